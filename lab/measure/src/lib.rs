//! Runs commands under allocators and records their cost.
//!
//! This crate emits [`Event`]s and prints nothing. It uses no statistics and no registry. The
//! engine passes it a [`Plan`](heapdrome_schema::Plan) and a folder, and requests rounds:
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
//! A forked child inherits the peak resident size of its parent, so a process that holds results
//! cannot measure small programs. Heapdrome therefore starts itself again as a [`launcher`]. This
//! small process starts all measured processes, waits for them, and kills them if necessary. When
//! heapdrome dies, its launchers notice that their socket closes, and kill their whole trees.

mod cgroup;
mod command;
pub mod counters;
mod environment;
mod error;
mod event;
mod idle;
mod image;
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

/// Flag that a signal handler sets. When it is set, the current run is killed with its whole
/// process tree.
pub type Interrupt = Arc<AtomicBool>;
