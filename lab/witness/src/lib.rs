//! Proves which object serves malloc in every process of a command.
//!
//! ```text
//! let witness = Witness::new(&cache)?;             // once
//! let key = witness.key(&request)?;                // a proof is invalid once its key changes
//! let session = witness.start(&request)?;          // runs the command, watched
//! session.stop(libc::SIGTERM);                     // for servers only
//! let report = session.finish()?;                  // waits for the command; has the proof
//! ```
//!
//! Two witnesses observe one unmeasured run. From inside, a preloaded library counts the calls to
//! the whole C and C++ allocation ABI and passes each on to the next definition. It writes into a
//! shared mapping, so its counts survive `_exit` and SIGKILL. From outside, a tracer follows every
//! fork and exec, so it also sees processes that the library never entered. From the relocations of
//! each loaded object, it reads which object receives that object's calls to malloc. docs/proof.md
//! describes both witnesses in full.

mod advice;
mod contents;
mod error;
mod evidence;
#[cfg(test)]
#[path = "../interpose/src/exponential.rs"]
mod exponential;
#[cfg(test)]
mod exponential_tests;
mod families;
mod filter;
mod home;
mod inspect;
mod judge;
#[cfg(test)]
mod judge_tests;
mod launch;
#[path = "../interpose/src/layout.rs"]
mod layout;
mod ledger;
mod look;
mod objects;
mod operators;
mod program;
mod proof;
mod request;
#[path = "../interpose/src/ring.rs"]
pub mod ring;
mod session;
#[path = "../interpose/src/stack_ring.rs"]
pub mod stack_ring;
mod ticks;
mod tracer;
mod tree;
mod watchdog;

pub use error::WitnessError;
pub use home::Home;
pub use layout::FUNCTIONS;
pub use look::add_uncounted;
pub use proof::ImageReport;
pub use request::{Request, is_bookkeeping};
pub use session::{Report, Session, Witness};
