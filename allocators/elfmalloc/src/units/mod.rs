//! Units: the memory of the process in pieces of 64 KiB. Arenas, the pool of free units, the class map, and memory for
//! structures.

pub mod arena;
pub mod class_map;
pub mod directory;
pub(crate) mod growth;
pub mod mapped;
pub mod metadata;
pub mod pool;
pub(crate) mod structures;
pub mod unit_map;
