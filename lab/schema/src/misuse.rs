//! What came of misusing an allocator on purpose.

use serde::{Deserialize, Serialize};

use crate::Ending;

/// How far a misusing program had come when something was said, or when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseStage {
    /// At the misuse itself.
    Misuse,
    /// When the blocks concerned were freed.
    Free,
    /// While other blocks came and went.
    Later,
    /// When the program ended.
    Exit,
}

/// What an allocator did about one kind of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// It said so, and the program was ended.
    Detected,
    /// It said so, and the program went on to its end.
    Warned,
    /// The program was ended without a word.
    Killed,
    /// Nothing was said, and memory that the program owned was changed, or what it had freed could
    /// be read.
    Harmed,
    /// Nothing was said, and no harm was seen.
    Unharmed,
    /// The program did not end within its limits of time and memory.
    Hung,
    /// The program did not come as far as the misuse.
    NotTried,
}

/// One run of a program that commits one kind of misuse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisuseRun {
    /// The allocator's name in the registry.
    pub allocator: String,
    /// The kind of misuse.
    pub kind: String,
    /// What came of it.
    pub outcome: MisuseOutcome,
    /// When it was said; where nothing was, how far the program came. `None` before the misuse.
    pub stage: Option<MisuseStage>,
    /// How the program ended.
    pub ending: Ending,
    /// The first line that the allocator wrote after the misuse.
    pub said: Option<String>,
    /// The first harm that the program saw.
    pub harm: Option<String>,
}
