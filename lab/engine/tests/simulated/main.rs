//! Races and sweeps without processes: a function returns the output and the cost of each command.

mod failures;
mod judged;
mod resumed;
mod runs;
mod support;
mod sweeps;
