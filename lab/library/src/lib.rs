//! Traces of well-known programs: recipes that record them, and small ones that heapdrome carries.
//! With these, allocators can be raced on real programs where none of them is installed.
//!
//! `heapdrome trace library` records the traces. `traces/` contains the small ones, with a manifest
//! that describes how each was made.

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
