//! Traces of well-known programs: recipes for recording traces, and small built-in traces. With a
//! built-in trace, users can race allocators on the allocations of a program that is not installed.
//!
//! `heapdrome trace library` records the traces. `traces/` contains the built-in traces, with a
//! manifest that describes the recording of each.

mod carried;
mod child;
mod error;
mod manifest;
mod recipe;
mod record;
mod script;
mod server;
mod shorten;
mod user;
mod work;

pub use carried::{Carried, carried, find_carried};
pub use error::LibraryError;
pub use manifest::{Entry, MANIFEST, Manifest};
pub use recipe::{Recipe, Size, find, recipes};
pub use record::{Event, Request, record};
