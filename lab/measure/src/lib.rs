//! Runs commands under allocators and records what they cost.
//!
//! This room emits [`Event`]s and prints nothing; it knows no statistics and no registry. The
//! command line gives it a [`Plan`](heapdrome_schema::Plan) and a folder, and asks for rounds:
//!
//! ```no_run
//! # fn sketch(plan: heapdrome_schema::Plan, machine: heapdrome_schema::Machine)
//! # -> Result<(), heapdrome_measure::MeasureError> {
//! use heapdrome_measure::{Interrupt, Race, launcher};
//! launcher::main_if_asked(); // the first line of main: this process may be a launcher
//! let interrupt = Interrupt::default(); // raised by a handler of SIGINT and SIGTERM
//! let mut race = Race::start(plan, machine, "races/1".as_ref())?;
//! race.setup(&interrupt)?;
//! race.warm_up(&mut |event| println!("{event:?}"), &interrupt)?;
//! let end = race.next_round(&mut |_| {}, &interrupt)?;
//! race.cleanup()?;
//! # let _ = end; Ok(()) }
//! ```
//!
//! Who starts what: the kernel hands the peak resident size of a parent down to its children, so
//! a process that holds results cannot measure small programs. Heapdrome therefore starts itself
//! again as a [`launcher`], a process that stays small, and that starts, waits for and, where it
//! must, kills everything that is measured. When heapdrome dies, its launchers see their socket
//! close and take their whole trees with them.

mod cgroup;
mod command;
pub mod counters;
mod environment;
mod error;
mod event;
mod idle;
pub mod journal;
pub mod launcher;
mod launchers;
mod library;
mod needs;
mod output;
mod parts;
#[cfg(test)]
mod plan_for_tests;
mod race;
mod rounds;
pub mod schedule;
mod scratch;
pub mod selftest;
mod server;
mod state;
mod timeline;
mod tree;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use environment::{
    BaseEnvironment, PAD, PAD_LIMIT, base_environment, command_environment, entrant_environment,
};
pub use error::MeasureError;
pub use event::{Event, Failure, RoundEnd};
pub use launchers::MemoryMethod;
pub use race::Race;

/// Raised by the handler of an interrupt; the run in progress is killed with its whole tree then.
pub type Interrupt = Arc<AtomicBool>;
