//! Slabs: runs of units that are cut into blocks of one class. This layer has the bins of slabs,
//! and decides which thread uses which bin.

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
