//! Profiles of generated traces, beside the truth that is computed from all operations at once.

mod hostile;
mod known;
mod random;
mod sampled;
mod stacks;
mod suspects;
mod trace;
mod truth;
