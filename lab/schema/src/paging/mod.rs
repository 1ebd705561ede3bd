//! Data of the paging lab: jobs of a child process, its reports, and the results of one setting in
//! all rounds.

mod cell;
mod distribution;
mod job;

pub use cell::{Experiment, Limit, PagingCell};
pub use distribution::{Distribution, Point};
pub use job::{
    Burst, Holder, Instructions, Job, Order, PagingReport, Read, Recycle, Strategy, Throughput,
    Variant,
};
