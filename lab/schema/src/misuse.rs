//! Results of deliberate misuse of an allocator.

use serde::{Deserialize, Serialize};

use crate::Ending;

/// Stage of a misuse program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseStage {
    /// During the misuse itself.
    Misuse,
    /// During the freeing of the affected blocks.
    Free,
    /// During later allocations and frees of other blocks.
    Later,
    /// During the end of the program.
    Exit,
}

/// Response of an allocator to one kind of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// The allocator reported the misuse, and the program ended early.
    Detected,
    /// The allocator reported the misuse, and the program ran to its end.
    Warned,
    /// The program ended early, without a message.
    Killed,
    /// Nothing was reported. Memory of the program was changed, or freed memory could be read.
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
    /// Name of the kind of misuse, as in tables.
    pub kind: String,
    /// Response of the allocator to the misuse.
    pub outcome: MisuseOutcome,
    /// Stage of the report. Without a report, the last stage that the program reached; `None` if it
    /// did not reach the misuse.
    pub stage: Option<MisuseStage>,
    /// Way in which the program ended.
    pub ending: Ending,
    /// First line that the allocator wrote after the misuse began. If the program did not reach the
    /// misuse, the last line of its output.
    pub said: Option<String>,
    /// First harm that the program detected.
    pub harm: Option<String>,
}
