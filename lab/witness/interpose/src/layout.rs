//! Layout of the record that the library keeps of one program of one process, in a shared mapping.
//!
//! The library writes the record, and the witness reads it. Both compile this file.

use core::sync::atomic::{AtomicI64, AtomicU64};

/// First word of a valid record.
pub const MAGIC: u64 = u64::from_le_bytes(*b"heapdrm1");

/// Maximum number of objects that a record can name.
pub const OBJECTS: usize = 8;

/// Number of bytes for an object's path, including its terminating zero.
pub const PATH_BYTES: usize = 1024;

/// Functions of the allocation ABI of C and C++, in the order of [`Record::functions`].
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

/// Name of a file whose presence beside the library makes the library follow every block.
pub const FOLLOW: &str = "follow";

/// Number of classes of block sizes: one for each number of binary digits.
pub const SIZES: usize = 48;

/// Index of `malloc` in [`FUNCTIONS`].
pub const MALLOC: usize = 0;

/// Counts of one function. The entry points add to the first two fields, which share a cache line.
#[repr(C, align(32))]
pub struct Function {
    /// Number of calls that were passed on. Calls by the serving object itself count only if that
    /// object is glibc.
    pub calls: u64,
    /// Number of bytes that these calls requested. A request of 2^47 bytes or more, which exceeds
    /// every address space, is not added.
    pub bytes: u64,
    /// Object to which the calls were passed on: its index in [`Record::objects`] plus one; 0 if no
    /// object was found for the function, or the record has no room for the object.
    pub object: AtomicU64,
}

/// Requested blocks whose sizes have the same number of binary digits.
#[repr(C)]
pub struct SizeCount {
    /// Number of blocks that were requested.
    pub blocks: AtomicU64,
    /// Sum of the blocks' sizes.
    pub bytes: AtomicU64,
}

/// System calls that the library itself makes in order to follow blocks.
#[repr(C)]
pub struct OwnCalls {
    /// Number of calls to `mmap`.
    pub mmap: AtomicU64,
    /// Number of calls to `munmap`.
    pub munmap: AtomicU64,
    /// Number of calls to `madvise`.
    pub madvise: AtomicU64,
}

/// Findings on all blocks, if they are followed.
#[repr(C)]
pub struct Followed {
    /// Number of live bytes.
    pub live: AtomicI64,
    /// Maximum number of live bytes at one time.
    pub peak: AtomicI64,
    /// Number of blocks that were freed or resized.
    pub frees: AtomicU64,
    /// Number of freed or resized blocks that another thread had requested.
    pub freed_by_others: AtomicU64,
    /// Number of timed calls, except interrupted ones.
    pub timed: AtomicU64,
    /// Ticks of the processor's counter that the timed calls took.
    pub ticks: AtomicU64,
    /// Ticks that the timing itself adds to each timed call.
    pub calibration: AtomicU64,
    /// System calls that the library made for its own use.
    pub own: OwnCalls,
    /// Requested blocks, indexed by the number of binary digits of their size.
    pub sizes: [SizeCount; SIZES],
}

/// Record of one program of one process.
#[repr(C)]
pub struct Record {
    /// [`MAGIC`].
    pub magic: u64,
    /// ID of the process, in its own PID namespace.
    pub process: u64,
    /// Object whose malloc the loader finds first: its index in `objects` plus one; 0 if that is
    /// the counting library, which is the normal case.
    pub first_malloc: AtomicU64,
    /// Number of claimed places in `objects`. Larger than [`OBJECTS`] if there was no room for some
    /// of the objects.
    pub objects_used: AtomicU64,
    /// One bit for each place in `objects`: set once the path is complete. It no longer changes
    /// then.
    pub objects_complete: AtomicU64,
    /// One entry for each of [`FUNCTIONS`].
    pub functions: [Function; FUNCTIONS.len()],
    /// Paths, each with a terminating zero. The empty path is that of the executable.
    pub objects: [[u8; PATH_BYTES]; OBJECTS],
    /// Findings from following every block; zeros if blocks are not followed.
    pub followed: Followed,
    /// Number of times that the kernel refused to let this program trace a process.
    pub refused_traces: u64,
}
