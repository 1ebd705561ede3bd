//! The paging lab measures the cost of working sets that exceed memory.
//!
//! It repeats the experiments of "Running lgalloc benchmarks on a target host", which the comments
//! of this crate call "the document".
//!
//! Each run of a cell of an experiment has its own child process, with [`heapdrome_schema::Job`] as
//! input and [`heapdrome_schema::PagingReport`] as output, one line of JSON each. A memory limit
//! ([`Enclosure`]) is made for that run only, and is read back before the run counts.
//!
//! The lab records swap ([`Swap`]), control groups and changed kernel settings ([`Setting`]) in a
//! ledger ([`Ledger`]) before it makes them. If a lab is killed, the next one removes or restores
//! them. The lab removes no item that it did not make, except that a killed lab's record may match
//! an unused zram device of another program. It prints nothing.

mod contained;
mod counters;
mod document;
mod error;
mod estimate;
mod evaluation;
mod experiments;
mod group;
mod item;
mod lab;
mod ledger;
mod limit;
mod members;
mod preload;
mod process;
mod published;
mod resume;
mod rounds;
mod schedule;
mod setting;
mod survive;
mod swap;
mod system;
mod tables;
mod verdicts;
mod words;

pub use contained::{Contained, Ended, Task, contain};
pub use counters::Counters;
pub use document::{DocumentSetting, Form, do_without_swap, document};
pub use error::Error;
pub use estimate::{Probe, expected, probes};
pub use evaluation::evaluate;
pub use experiments::{
    AHEAD, Holding, Measuring, Sweep, halves, random, strategies, swapped, sweep, throughput,
};
pub use group::{Seen, Tally, own_tally, seen_limit};
pub use item::Item;
pub use lab::Lab;
pub use ledger::{Ledger, Leftovers, Made};
pub use limit::{Attempt, Enclosure, Mechanism};
pub use resume::take_up;
pub use schedule::{Rounds, Schedule, Turn, last_round};
pub use setting::Setting;
pub use survive::{STEP, Search, patience, told_trial};
pub use swap::{Swap, SwapKind, SwapRequest, free_swap};
pub use verdicts::{claims, open_cells, targets};
pub use words::{bytes, size};
