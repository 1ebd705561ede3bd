//! Races, sweeps and what becomes of them, where no process is started: a function says what each command prints
//! and costs.

mod judged;
mod support;
mod sweeps;
