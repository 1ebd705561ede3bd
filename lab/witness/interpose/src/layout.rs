//! The record that one program of one process leaves, as it lies in the shared mapping.
//!
//! The library writes it and the tracer reads it; both compile this file.

use core::sync::atomic::{AtomicI64, AtomicU64};

/// The first word of a record that is ready to be read.
pub const MAGIC: u64 = u64::from_le_bytes(*b"heapdrm1");

/// How many objects a record can name.
pub const OBJECTS: usize = 8;

/// Bytes for an object's path, its terminating zero included.
pub const PATH_BYTES: usize = 1024;

/// The allocation ABI of C and C++, in the order of [`Record::functions`].
pub const FUNCTIONS: [&str; 34] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "free_sized",
    "free_aligned_sized",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
];

/// A file of this name beside the library makes it follow every block.
pub const FOLLOW: &str = "follow";

/// Number of classes of block sizes: one for each number of binary digits.
pub const SIZES: usize = 48;

/// The place of `malloc` in [`FUNCTIONS`].
pub const MALLOC: usize = 0;

/// Counts of one function. The entry points add to the first two words, which lie in one cache
/// line.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub struct Function {
    /// Calls that were passed on, without those that the serving object made to itself.
    pub calls: u64,
    /// Bytes that those calls asked for. A call for 2^47 bytes or more, which no address space
    /// holds, adds none.
    pub bytes: u64,
    /// The object that they were passed on to: its place in [`Record::objects`] plus one, or 0
    /// where the function was never called.
    pub object: u64,
}

/// Blocks of one size.
#[repr(C)]
pub struct SizeCount {
    /// How many were asked for.
    pub blocks: AtomicU64,
    /// Their sizes, added up.
    pub bytes: AtomicU64,
}

/// Calls to the system that the library makes for itself where it follows blocks.
#[repr(C)]
pub struct OwnCalls {
    /// Anonymous mappings.
    pub mmap: AtomicU64,
    /// Mappings taken away.
    pub munmap: AtomicU64,
    /// Advice.
    pub madvise: AtomicU64,
}

/// Findings on all blocks, if they are followed.
#[repr(C)]
pub struct Followed {
    /// Bytes that live now.
    pub live: AtomicI64,
    /// Most bytes that lived at one time.
    pub peak: AtomicI64,
    /// Blocks that were freed or resized.
    pub frees: AtomicU64,
    /// How many of them another thread had asked for.
    pub freed_by_others: AtomicU64,
    /// Calls that were timed, without those that were interrupted.
    pub timed: AtomicU64,
    /// Ticks of the processor's counter that they took.
    pub ticks: AtomicU64,
    /// Ticks that timing itself takes in each.
    pub calibration: AtomicU64,
    /// Calls to the system that the library made for itself.
    pub own: OwnCalls,
    /// Blocks by the number of binary digits of their size.
    pub sizes: [SizeCount; SIZES],
}

/// One program of one process.
#[repr(C)]
pub struct Record {
    /// [`MAGIC`].
    pub magic: u64,
    /// The process, as it names itself.
    pub process: u64,
    /// Who defines the malloc that the program's own objects find first: place plus one, or 0 for
    /// the counting library, as it should be.
    pub first_malloc: u64,
    /// How many places of `objects` are taken.
    pub objects_used: u64,
    /// One entry for each of [`FUNCTIONS`].
    pub functions: [Function; FUNCTIONS.len()],
    /// Paths, each ended by a zero; an empty one is the executable's.
    pub objects: [[u8; PATH_BYTES]; OBJECTS],
    /// Findings from following every block; zeros if blocks are not followed.
    pub followed: Followed,
    /// Attempts to trace a process that the kernel refused.
    pub refused_traces: u64,
}
