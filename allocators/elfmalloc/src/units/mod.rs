//! Units: 64 KiB pieces of the process's memory. This layer manages the arenas, the pool of free
//! units, the class map, memory for structures, and blocks that are runs of units or have their own
//! mappings.

pub mod amount;
pub mod arena;
pub mod class_map;
pub mod descriptor;
pub mod directory;
pub(crate) mod growth;
pub mod large;
pub mod mapped;
pub mod mapped_blocks;
pub mod memory;
pub mod metadata;
pub mod pool;
pub(crate) mod purge;
pub mod unit_map;
