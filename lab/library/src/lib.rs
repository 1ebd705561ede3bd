//! Traces of well-known programs: the recipes that record them, and small ones that heapdrome
//! carries, so that an allocator can be judged by real programs where none of them is installed.
//!
//! `heapdrome trace library` records the traces; `traces/` holds the small ones, with a manifest
//! that says how each was made.

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
