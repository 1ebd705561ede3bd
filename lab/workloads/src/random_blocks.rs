//! Blocks of random sizes, and the parameters that describe them.

mod blocks;
mod parameters;
mod sizes;
mod slot;

pub(crate) use blocks::{Blocks, Kind};
pub(crate) use parameters::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH, check_align, check_sizes};
pub(crate) use sizes::{Shape, Sizes};
pub(crate) use slot::Slot;
