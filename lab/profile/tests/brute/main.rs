//! Compares profiles of generated traces with results that are computed from all operations.

mod hostile;
mod known;
mod random;
mod sampled;
mod stacks;
mod suspects;
mod trace;
mod truth;
