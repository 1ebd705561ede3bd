//! Compares profiles of generated traces with figures that are known, or computed by brute force.

mod hostile;
mod known;
mod random;
mod sampled;
mod stacks;
mod suspects;
mod trace;
mod truth;
