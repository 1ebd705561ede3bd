//! What a workload of heapdrome's own says about one run of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The one line that a workload's process prints on standard output.
///
/// Everything but `figures` follows from the workload, its parameters and its seed, so that it can
/// be compared between allocators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// The name of the workload.
    pub workload: String,
    /// Every parameter with its value, as `name=value` words.
    pub parameters: String,
    /// Operations of the measured part; what one is, the workload's description says.
    pub operations: u64,
    /// A hash, in hexadecimal, of everything that was read back from allocated memory.
    pub checksum: String,
    /// What was measured, by name; the names end in their units.
    pub figures: BTreeMap<String, f64>,
}
