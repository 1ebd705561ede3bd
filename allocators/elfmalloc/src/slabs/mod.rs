//! Slabs: runs of units that are cut into blocks of one class. Bins of slabs, and who uses which bin.

pub mod bin;
pub(crate) mod bit_runs;
pub(crate) mod empties;
pub mod processors;
pub(crate) mod retire;
pub(crate) mod shape;
pub mod slab;
pub(crate) mod slab_purge;
pub(crate) mod states;
