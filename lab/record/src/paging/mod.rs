//! The data of the paging lab: what a child process is asked to do, what it answers, and what came
//! of one setting in all rounds.

mod cell;
mod distribution;
mod job;

pub use cell::{Experiment, Limit, PagingCell};
pub use distribution::{Distribution, Point};
pub use job::{
    Burst, Holder, Instructions, Job, Order, PagingReport, Read, Recycle, Strategy, Throughput,
    Variant,
};
