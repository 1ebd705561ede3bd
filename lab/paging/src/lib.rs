//! The paging lab: what memory costs when it does not fit.
//!
//! Experiments run in a child process of their own ([`Job`] in, [`Report`] out, one line of JSON
//! each), under a limit of memory that is made for that one run ([`Enclosure`]) and read back before
//! it counts. Swap ([`Swap`]) and control groups that the lab makes are written down in a ledger
//! ([`Ledger`]) before they are made, so that what a killed lab left behind is removed by the next.
//! Nothing that the lab did not make is ever removed or changed. It prints nothing.

mod cell;
mod contained;
mod counters;
mod distribution;
mod error;
mod group;
mod item;
mod job;
mod lab;
mod ledger;
mod limit;
mod members;
mod preload;
mod process;
mod published;
mod rights;
mod rounds;
mod setting;
mod survive;
mod swap;
mod system;
mod tables;
mod verdicts;
mod words;

pub use cell::Cell;
pub use contained::{Contained, Ended, Task, contain};
pub use counters::Counters;
pub use distribution::{Distribution, Point};
pub use error::Error;
pub use group::{Seen, Tally, own_tally, seen_limit};
pub use item::Item;
pub use job::{
    Burst, Holder, Instructions, Job, Order, Read, Recycle, Report, Strategy, Throughput, Variant,
};
pub use lab::Lab;
pub use ledger::{Ledger, Leftovers, Made};
pub use limit::{Attempt, Enclosure, Limit, Mechanism};
pub use preload::Preload;
pub use published::beside;
pub use rounds::{Event, Plan};
pub use setting::{HUGE_PAGES, Setting, huge_pages};
pub use survive::{STEP, Search, patience, told_trial};
pub use swap::{Swap, SwapKind, SwapRequest, free_swap};
pub use tables::{
    burst_table, ccdf_table, counters_table, kept_table, pair_table, published_table, ratio_table,
    realloc_scaling_table, realloc_table, recycle_table, scaling_table, strategy_table,
    summary_table, throughput_table,
};
pub use verdicts::{claims, open_cells, targets};
pub use words::{bytes, ratio, size, time};
