//! Passes blocks from thread to thread, and waits for the other threads.

mod post;
mod rest;

pub(crate) use post::{Parcel, Parcels, Post};
pub(crate) use rest::Rest;
