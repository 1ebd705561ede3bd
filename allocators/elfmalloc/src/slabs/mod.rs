//! Slabs: runs of units that are divided into blocks of one class. This layer manages the bins of
//! slabs, and assigns bins to threads.

pub mod bin;
pub(crate) mod bit_runs;
pub mod free_blocks;
pub mod partial;
pub(crate) mod processors;
pub(crate) mod shape;
pub mod shard;
pub mod shards;
pub mod slab;
pub(crate) mod states;
