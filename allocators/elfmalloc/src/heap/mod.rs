//! What threads have: the fast path, magazines, depots, and the way between them and slabs.

pub mod backend;
pub mod check;
pub mod coalescer;
pub mod depot;
pub mod drain;
pub mod fork;
pub mod front;
pub mod front_end;
pub mod heaps;
pub mod large;
pub mod local_cache;
pub mod magazine;
pub mod maintenance;
pub mod quarantine;
pub mod reclaim;
pub mod refill;
pub mod spill;
pub mod threads;
