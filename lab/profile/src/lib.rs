//! Profiles a trace: how much memory a program requested, when, in which sizes, and for how long.
//!
//! One pass over the trace makes a [`Profile`]. The pass needs memory for the live blocks, and a
//! bounded amount for each process, thread and stack, however long the trace is. `docs/profiles.md`
//! describes each figure.

#![forbid(unsafe_code)]

mod amount;
mod blocks;
mod classes;
mod counts;
mod digits;
mod growth;
mod process;
mod read;
mod resizes;
mod rounding;
mod sampling;
pub mod size_classes;
mod stacks;
mod sum;
mod time;
mod timeline;

pub use amount::Amount;
pub use classes::Class;
pub use counts::{Counts, FunctionCalls, Rounded};
pub use digits::Digits;
pub use growth::Suspect;
pub use process::{Peak, ProcessProfile};
pub use read::{Profile, profile};
pub use resizes::Resizes;
pub use sampling::{Sampling, Variance};
pub use stacks::{Code, StackUse};
pub use sum::{All, Bounds};
pub use time::{TimeInAllocator, Untimed};
pub use timeline::{Level, POINTS, Point, Timeline};
