//! Report of a built-in workload on one of its runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The single line that a workload's process prints on standard output.
///
/// All fields except `figures` are determined by the workload, its parameters and its seed, so they
/// can be compared between allocators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Name of the workload.
    pub workload: String,
    /// Every parameter with its value, as `name=value` words.
    pub parameters: String,
    /// Number of operations in the measured part. The workload's description defines an operation.
    pub operations: u64,
    /// Hash, in hexadecimal, of all data that was read back from allocated memory.
    pub checksum: String,
    /// Measured figures by name. The name of a figure with a unit contains the unit.
    pub figures: BTreeMap<String, f64>,
}
