//! Results stored for the tests. The published results are measured again from time to time, so
//! only the test of the README may depend on their figures.

use std::path::PathBuf;

use serde_json::Value;

/// Race with intervals narrow enough to be compared, except that of one allocator.
pub const RACE: &str = "race.json";

/// Sweep of a command over two parameters.
pub const SWEEP: &str = "sweep.json";

/// Part of a suite: races of two cells, one of them with several numbers of threads.
pub const SUITE: &str = "suite.json";

/// Part of an experiment of the paging lab: tables and times, without a race.
pub const EXPERIMENT: &str = "experiment.json";

/// Returns the text of a stored result.
pub fn text(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/fixtures");
    std::fs::read_to_string(folder.join(name)).expect("the result is there")
}

/// Returns a stored result as JSON.
pub fn value(name: &str) -> Value {
    serde_json::from_str(&text(name)).expect("JSON")
}
