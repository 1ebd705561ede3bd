//! Races and sweeps without processes: a function returns the output and the cost of each command.

mod judged;
mod support;
mod sweeps;
