//! Suites: measurements as data, most of them from published documents, so that they can be
//! repeated.
//!
//! A suite lists its cells (a workload with its parameters), its allocators, and the tables to
//! print. If the suite repeats a document, the allocators have the document's names. The suite also
//! contains the published figures, and the claims and targets in a form that races can decide. This
//! crate starts no process: [`Suite::races`] lists the races, and [`evaluate`] turns their results
//! into tables and verdicts.

mod claim;
mod claims;
mod definition;
mod entrants;
mod error;
mod figures;
mod misuse;
mod published;
mod races;
mod renamed;
mod results;
mod table_plan;
mod tables;

pub use claim::{Claim, HoldsFor, Range, RatioTest, Test, Unless};
pub use claims::{Decided, Part, weigh, within_rounds, without};
pub use definition::{Cell, Document, Entrant, Form, Suite, Sweep};
pub use entrants::{ALPHA, rule};
pub use error::SuiteError;
pub use misuse::{Kind, MISUSE, kinds, misuse_tables};
pub use published::PublishedTable;
pub use races::{Probe, Race, Selection, probe};
pub use renamed::{present_name, rename};
pub use results::{Evaluation, evaluate};
pub use table_plan::{Against, Makes, Shown, TablePlan, Unit};

use std::sync::LazyLock;

/// Text of the data file of the suite that replays the built-in traces.
pub const TRACES: &str = include_str!("../suites/traces.toml");

const FILES: [&str; 7] = [
    include_str!("../suites/alloc-perf-test.toml"),
    include_str!("../suites/elfmalloc.toml"),
    include_str!("../suites/rpmalloc.toml"),
    include_str!("../suites/preload.toml"),
    include_str!("../suites/real.toml"),
    TRACES,
    include_str!("../suites/own-allocators.toml"),
];

/// Name that stands for all suites, except those that run only if they are named.
pub const ALL: &str = "all";

static SUITES: LazyLock<Vec<Suite>> = LazyLock::new(|| {
    let read = |text: &&str| Suite::read(text).expect("the suites' own data files are right");
    FILES.iter().map(read).collect()
});

/// Returns every suite of races. `all` keeps this order, and omits those that run only if they are
/// named.
pub fn list() -> &'static [Suite] {
    &SUITES
}

/// Returns the suite of this name; for `all`, every suite except those that run only if they are
/// named.
///
/// # Errors
/// When no suite has this name. The error suggests the most similar name.
pub fn find(name: &str) -> Result<Vec<Suite>, SuiteError> {
    if name == ALL {
        let together = list().iter().filter(|suite| !suite.apart);
        return Ok(together.cloned().collect());
    }
    match list().iter().find(|suite| suite.name == name) {
        Some(suite) => Ok(vec![suite.clone()]),
        None => {
            let names = list().iter().map(|suite| suite.name.as_str());
            let known: Vec<&str> = names.chain([MISUSE, ALL]).collect();
            Err(SuiteError::unknown(name, &known))
        }
    }
}
