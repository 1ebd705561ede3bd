//! Kinds of claims that a replay of a trace supports, and the evidence of its fidelity.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::{CPU, PEAK_RSS, WALL};

/// Speed at which a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplaySpeed {
    /// As fast as the order between allocating and freeing threads allows.
    #[default]
    Dependencies,
    /// With the pauses that were recorded.
    Paced,
    /// One operation at a time, in the order of the recording.
    Locked,
}

/// Kind of claim about a program that a figure of its replay may support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Speed of the allocator: times, rates, waits, and counters of the processor.
    Throughput,
    /// Peak memory, its overhead, and page faults.
    Peak,
    /// Memory over time: purging, decay and idle memory.
    OverTime,
}

impl Claim {
    /// Returns the kind of claim to which the figure of this name belongs. An unknown figure
    /// belongs to [`Claim::Throughput`], because it may depend on the speed.
    #[must_use]
    pub fn of(figure: &str) -> Self {
        match figure {
            PEAK_RSS
            | "peak_tree_bytes"
            | "minor_faults"
            | "major_faults"
            | "overhead"
            | "peak_requested_bytes"
            | "peak_resident_bytes"
            | "tables_bytes"
            | "operation_faults" => Self::Peak,
            "average_tree_bytes" | "end_resident_bytes" => Self::OverTime,
            _ => Self::Throughput,
        }
    }

    /// Returns the subject of the claim as a noun phrase, for use in a sentence.
    #[must_use]
    pub fn spoken(self) -> &'static str {
        match self {
            Self::Throughput => "time",
            Self::Peak => "peak memory",
            Self::OverTime => "memory over time",
        }
    }
}

impl ReplaySpeed {
    /// Every speed.
    pub const ALL: [Self; 3] = [Self::Dependencies, Self::Paced, Self::Locked];

    /// Returns the speed's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dependencies => "dependencies",
            Self::Paced => "paced",
            Self::Locked => "locked",
        }
    }

    /// Returns the speed with this name, if there is one.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns whether a replay at this speed supports claims of this kind.
    #[must_use]
    pub fn supports(self, claim: Claim) -> bool {
        match (self, claim) {
            (Self::Dependencies, Claim::Throughput | Claim::Peak) => true,
            (Self::Paced, Claim::Peak | Claim::OverTime) => true,
            (Self::Dependencies, Claim::OverTime) | (Self::Paced, Claim::Throughput) => false,
            (Self::Locked, _) => false,
        }
    }

    /// Returns the speed to recommend for claims of this kind. A replay at this speed supports
    /// them.
    #[must_use]
    pub fn of(claim: Claim) -> Self {
        match claim {
            Claim::Throughput => Self::Dependencies,
            Claim::Peak | Claim::OverTime => Self::Paced,
        }
    }
}

impl Display for ReplaySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The replay that a race runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Speed of the replay.
    pub speed: ReplaySpeed,
    /// SHA-256 of the trace in hexadecimal.
    pub trace_sha256: String,
    /// Share of the recorded process's processor time that was spent in the allocator, from 0 to 1,
    /// if the trace contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator_share: Option<f64>,
    /// Outcome of the latest check of this trace and process; `None` without a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
}

impl Replayed {
    /// Returns whether the replay supports a verdict on the figure of this name.
    #[must_use]
    pub fn supports(&self, figure: &str) -> bool {
        self.speed.supports(Claim::of(figure))
    }
}

/// Property in which a replay is compared with its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Peak of the memory that malloc serves, under the recorded allocator.
    PeakMemory,
    /// Page faults, under the recorded allocator.
    PageFaults,
    /// Order of the entrants by peak of the memory that malloc serves.
    MemoryOrder,
    /// Side of 1 on which the ratio of two entrants' wall times lies.
    WallTime,
    /// Side of 1 on which the ratio of two entrants' processor times lies.
    ProcessorTime,
}

impl Property {
    /// Every property, in display order.
    pub const ALL: [Self; 5] = [
        Self::PeakMemory,
        Self::PageFaults,
        Self::MemoryOrder,
        Self::WallTime,
        Self::ProcessorTime,
    ];

    /// Returns the property's name in tables and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PeakMemory => "peak memory",
            Self::PageFaults => "page faults",
            Self::MemoryOrder => "order by memory",
            Self::WallTime => "wall time",
            Self::ProcessorTime => "processor time",
        }
    }

    /// Returns whether the property is compared only under the allocator of the recording. The
    /// other properties compare the entrants with each other.
    #[must_use]
    pub fn is_of_recorded(self) -> bool {
        matches!(self, Self::PeakMemory | Self::PageFaults)
    }

    /// Returns whether a verdict on the figure of this name relies on the property.
    #[must_use]
    pub fn concerns(self, figure: &str) -> bool {
        match self {
            Self::PeakMemory | Self::MemoryOrder => {
                Claim::of(figure) != Claim::Throughput && !figure.ends_with("_faults")
            }
            Self::PageFaults => figure.ends_with("_faults"),
            Self::WallTime => matches!(figure, WALL | "measured_wall_s" | "ns_per_operation"),
            Self::ProcessorTime => matches!(
                figure,
                CPU | "user_s" | "system_s" | "measured_cpu_s" | "operations_per_cpu_s"
            ),
        }
    }
}

/// Outcome of the comparison in one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The replay is within the limit.
    Within,
    /// The replay is beyond the limit.
    Miss,
    /// The entrants that ran the program do not differ, so the replay has nothing to reproduce.
    NothingToCompare,
    /// The replay's figures are too noisy for a verdict.
    NotDecided,
}

/// Comparison of a replay with its program in one property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityCheck {
    /// Property that was compared.
    pub property: Property,
    /// Outcome of the comparison with the limit.
    pub agreement: Agreement,
    /// The measured value of the program, in words.
    pub program: String,
    /// The measured value of the replay, in words.
    pub replay: String,
    /// The measured deviation, in words.
    pub found: String,
    /// Limit of the deviation, in words.
    pub limit: String,
}

/// Evidence of how faithfully a replay repeats its program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// SHA-256 of the trace in hexadecimal.
    pub trace_sha256: String,
    /// Number of the replayed process, as the trace numbers its processes.
    pub process: u32,
    /// The command with which the replay was compared.
    pub command: Vec<String>,
    /// Start time of the check, in UTC, as RFC 3339.
    pub checked: String,
    /// Names of the entrants that ran the program and its replays.
    pub entrants: Vec<String>,
    /// Number of rounds in which the program itself ran.
    pub rounds: u32,
    /// Comparisons, one for each property.
    pub checks: Vec<FidelityCheck>,
}

impl Fidelity {
    /// Returns the comparisons beyond their limits.
    pub fn misses(&self) -> impl Iterator<Item = &FidelityCheck> {
        let missed = |one: &&FidelityCheck| one.agreement == Agreement::Miss;
        self.checks.iter().filter(missed)
    }

    /// Returns the misses that weaken a verdict on the figure of this name.
    pub fn misses_on(&self, figure: &str) -> impl Iterator<Item = &FidelityCheck> {
        self.misses().filter(|one| one.property.concerns(figure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_a_speed_that_supports_it_and_locked_supports_none() {
        for claim in [Claim::Throughput, Claim::Peak, Claim::OverTime] {
            assert!(ReplaySpeed::of(claim).supports(claim));
            assert!(!ReplaySpeed::Locked.supports(claim));
        }
        assert!(!ReplaySpeed::Paced.supports(Claim::Throughput));
        assert!(!ReplaySpeed::Dependencies.supports(Claim::OverTime));
    }

    #[test]
    fn a_figure_makes_one_kind_of_claim() {
        assert_eq!(Claim::of(WALL), Claim::Throughput);
        assert_eq!(Claim::of("operations_per_cpu_s"), Claim::Throughput);
        assert_eq!(Claim::of(PEAK_RSS), Claim::Peak);
        assert_eq!(Claim::of("average_tree_bytes"), Claim::OverTime);
        let concerned = |figure| Property::ALL.map(|one| one.concerns(figure));
        assert_eq!(concerned(WALL), [false, false, false, true, false]);
        assert_eq!(concerned(PEAK_RSS), [true, false, true, false, false]);
        assert_eq!(
            concerned("minor_faults"),
            [false, true, false, false, false]
        );
    }
}
