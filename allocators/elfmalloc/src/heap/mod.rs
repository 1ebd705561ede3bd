//! State of threads: fast path, magazines, depots, and the paths between them and slabs.

pub mod coalescer;
pub mod depot;
pub mod flush;
pub mod front;
pub mod front_end;
pub(crate) mod grow;
pub mod heap_list;
pub mod heaps;
pub mod large;
pub mod local_cache;
pub mod magazine;
pub mod maintenance;
pub(crate) mod multiples;
pub mod outflow;
pub mod quarantine;
pub mod refill;
pub mod thread_heap;
pub mod threads;
