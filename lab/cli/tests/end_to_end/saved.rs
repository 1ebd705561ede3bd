//! Results that the tests bring along. Those that are published are measured anew from time to
//! time, and no test but that of the README may rest on their figures.

use std::path::PathBuf;

use serde_json::Value;

/// A race with intervals narrow enough to be compared, and one allocator whose interval is not.
pub const RACE: &str = "race.json";

/// A sweep of a command over two parameters.
pub const SWEEP: &str = "sweep.json";

/// Part of a suite: races of two cells, one of them with several numbers of threads.
pub const SUITE: &str = "suite.json";

/// Part of an experiment of the paging lab: tables and times, and no race.
pub const EXPERIMENT: &str = "experiment.json";

/// The file of a result.
pub fn text(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/fixtures");
    std::fs::read_to_string(folder.join(name)).expect("the result is there")
}

/// What is in it.
pub fn value(name: &str) -> Value {
    serde_json::from_str(&text(name)).expect("JSON")
}
