//! Results of deliberate misuse of an allocator.

use serde::{Deserialize, Serialize};

use crate::Ending;

/// Stage that a misusing program had reached when the allocator reported, or when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseStage {
    /// At the misuse itself.
    Misuse,
    /// While the affected blocks were freed.
    Free,
    /// While other blocks were allocated and freed.
    Later,
    /// While the program ended.
    Exit,
}

/// Response of an allocator to one kind of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// The allocator reported it and ended the program.
    Detected,
    /// The allocator reported it, and the program ran to its end.
    Warned,
    /// The program was ended without a message.
    Killed,
    /// Nothing was reported, and memory that the program owned was changed, or freed memory could
    /// be read.
    Harmed,
    /// Nothing was reported, and no harm was seen.
    Unharmed,
    /// The program did not end within its limits of time and memory.
    Hung,
    /// The program did not reach the misuse.
    NotTried,
}

/// One run of a program that commits one kind of misuse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisuseRun {
    /// Name of the allocator in the registry.
    pub allocator: String,
    /// Kind of misuse.
    pub kind: String,
    /// Outcome.
    pub outcome: MisuseOutcome,
    /// Stage of the report, or without a report the last stage that the program reached. `None`
    /// before the misuse.
    pub stage: Option<MisuseStage>,
    /// Way in which the program ended.
    pub ending: Ending,
    /// First line that the allocator wrote after the misuse.
    pub said: Option<String>,
    /// First harm that the program detected.
    pub harm: Option<String>,
}
