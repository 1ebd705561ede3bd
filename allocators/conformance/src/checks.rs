//! Checks of the allocation ABI, from its ordinary use to corner cases. Each of the small C and C++
//! programs contains one or several checks.

use crate::check::{Check, Limit, basic, check};
use crate::source::{BASIC, Header, Source};

macro_rules! source {
    ($file:literal) => {
        source!($file, &[])
    };
    ($file:literal, $headers:expr) => {
        &Source::new(
            $file,
            include_str!(concat!("../programs/", $file)),
            $headers,
        )
    };
}

const MUST: &[Header] = &[("must.h", include_str!("../programs/must.h"))];
const STORM: &[Header] = &[("storm.h", include_str!("../programs/storm.h"))];

const ABI: &Source = source!("abi.c", MUST);
const CXX: &Source = source!("cxx.cpp", MUST);
const EXHAUSTION: &Source = source!("exhaustion.c", MUST);
const CXX_EXHAUSTION: &Source = source!("cxx_exhaustion.cpp", MUST);
const EXPORTS: &Source = source!("exports.c");
const FORK: &Source = source!("fork.c", MUST);
const FORK_STDIO: &Source = source!("fork_stdio.c", STORM);
const FORK_STREAMS: &Source = source!("fork_streams.cpp", STORM);
const LIFETIME: &Source = source!("lifetime.cpp", MUST);
const LOADING: &Source = source!("loading.c", MUST);
const RUNTIME_LIMIT: &Source = source!("runtime_limit.c", MUST);
const SIGNALS: &Source = source!("signals.c", MUST);
const THREADS: &Source = source!("threads.c", MUST);

const ADDRESSES: Limit = Limit::AddressSpace(256 << 20);
const WRITABLE: Limit = Limit::Writable(256 << 20);

const CHECKS: &[Check] = &[
    basic(
        source!("basic_c.c", BASIC),
        "C",
        "400,000 random operations with verified contents; corner cases; the C library's own calls",
    ),
    basic(
        source!("basic_cxx.cpp", BASIC),
        "C++",
        "every `operator new` and `delete`, containers, exceptions, thread-local objects",
    ),
    basic(
        source!("basic_threads.c", BASIC),
        "threads",
        "four threads that free each other's objects; threads that start and end",
    ),
    basic(
        source!("basic_aligned.c", BASIC),
        "aligned",
        "every function for aligned memory, with every alignment up to 4 MiB",
    ),
    basic(
        source!("basic_fork.c", BASIC),
        "fork",
        "300 forks while three threads allocate; each child continues to allocate",
    ),
    basic(
        source!("basic_exhaustion.cpp", BASIC),
        "exhaustion",
        "requests that exceed memory are refused",
    ),
    check(
        EXPORTS,
        "exports",
        "the library exports every name of the C and C++ ABI, and each function works",
    )
    .with(WRITABLE),
    check(
        ABI,
        "errno-kept",
        "successful calls, and every `free`, leave `errno` unchanged",
    ),
    check(
        ABI,
        "overflow",
        "products of sizes that overflow are refused",
    ),
    check(ABI, "too-large", "impossibly large sizes are refused"),
    check(
        ABI,
        "unique-empty",
        "each block of 0 bytes has its own address",
    ),
    check(
        ABI,
        "posix-memalign-errors",
        "a failed `posix_memalign` returns the right error and leaves the pointer unchanged",
    ),
    check(
        ABI,
        "realloc-to-nothing",
        "`realloc` to 0 bytes frees the block",
    ),
    check(
        ABI,
        "alignment",
        "every function returns blocks with the required alignment, at every alignment",
    ),
    check(
        ABI,
        "zeroing",
        "`calloc` returns zeros, also in reused memory",
    ),
    check(
        ABI,
        "usable-size",
        "every usable byte of a block can be written",
    ),
    check(
        ABI,
        "usable-empty",
        "every function returns a block of 0 bytes with a usable byte, or one that cannot be accessed",
    ),
    check(
        ABI,
        "extreme-alignment",
        "every aligned function, with every power of two up to 2^63, returns a block, or null and `ENOMEM`",
    ),
    check(
        ABI,
        "realloc-boundaries",
        "`realloc` keeps the contents across every boundary of its size ranges",
    ),
    check(
        ABI,
        "information",
        "`mallinfo2`, `malloc_info`, `mallopt` and `malloc_trim` work",
    ),
    check(
        ABI,
        "page-aligned",
        "`valloc` and `pvalloc` return page-aligned blocks",
    ),
    check(
        ABI,
        "no-cxx-runtime",
        "the library loads no C++ library into a C program",
    ),
    check(
        CXX,
        "new-handler",
        "`operator new` calls its handler until memory is available",
    ),
    check(
        CXX,
        "bad-alloc",
        "`operator new` throws the right exceptions",
    ),
    check(
        CXX,
        "handler-throws",
        "an exception that the handler throws reaches the caller of `operator new`",
    ),
    check(
        CXX,
        "nothrow",
        "`nothrow` forms of `operator new` return null on failure",
    ),
    check(
        CXX,
        "nothrow-handler-throws",
        "`nothrow` forms return null if the handler throws",
    ),
    check(CXX, "aligned-new", "aligned forms of `operator new` work"),
    check(
        CXX,
        "extreme-new",
        "aligned forms of `operator new` with every power of two up to 2^63 succeed, throw or return null",
    ),
    check(
        LIFETIME,
        "static-lifetime",
        "static constructors, static destructors and `atexit` handlers can allocate",
    ),
    check(
        LIFETIME,
        "tls-destructors",
        "destructors of thread-local objects can allocate and free",
    ),
    check(
        THREADS,
        "key-destructors",
        "destructors of `pthread_key`s can allocate and free: 60 keys in 400 threads",
    ),
    check(
        THREADS,
        "many-threads",
        "10,000 threads that allocate and end leave no memory in use",
    ),
    check(
        THREADS,
        "silent-threads",
        "8,000 threads that end without allocating leave no memory in use",
    ),
    check(
        THREADS,
        "outliving-blocks",
        "blocks outlive their threads; other threads free or grow them",
    ),
    check(
        FORK,
        "fork-busy",
        "60 forks of four busy threads; the children allocate, free and start threads",
    ),
    check(
        FORK,
        "fork-handlers",
        "60 forks of four busy threads with `pthread_atfork` handlers that allocate",
    ),
    check(
        FORK,
        "fork-locked",
        "60 forks of four busy threads with handlers that take a lock under which another thread allocates",
    ),
    check(
        FORK_STDIO,
        "fork-stdio",
        "four threads fork beside `getline`, `fflush(NULL)`, `dlopen`, `tzset` and others",
    ),
    check(
        FORK_STREAMS,
        "fork-streams",
        "four threads fork beside C++ streams, exceptions and `fflush(NULL)`",
    ),
    check(SIGNALS, "signals", "signals interrupt four busy threads"),
    check(
        EXHAUSTION,
        "exhaustion-small",
        "256 MiB of address space filled with small blocks, freed, and used again",
    )
    .with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-large",
        "256 MiB of address space filled with large blocks",
    )
    .with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-sizes",
        "256 MiB of address space filled with blocks of one size after the other",
    )
    .with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-threads",
        "256 MiB of address space filled by several threads",
    )
    .with(ADDRESSES),
    check(
        CXX_EXHAUSTION,
        "exhaustion-throws",
        "256 MiB of address space filled by `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-aligned",
        "256 MiB of address space filled with aligned blocks of every function",
    )
    .with(ADDRESSES),
    check(
        CXX_EXHAUSTION,
        "exhaustion-throws-aligned",
        "256 MiB of address space filled by aligned `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        THREADS,
        "start-in-little",
        "start in 256 MiB of address space, with eight threads",
    )
    .with(ADDRESSES),
    check(
        THREADS,
        "committed-start",
        "start with 256 MiB of writable memory, with eight threads",
    )
    .with(WRITABLE),
    check(
        EXHAUSTION,
        "committed-small",
        "256 MiB of writable memory filled with small blocks",
    )
    .with(WRITABLE),
    check(
        EXHAUSTION,
        "committed-large",
        "256 MiB of writable memory filled with large blocks",
    )
    .with(WRITABLE),
    check(
        EXHAUSTION,
        "committed-mixed",
        "256 MiB of writable memory filled with small and large blocks",
    )
    .with(WRITABLE),
    check(
        RUNTIME_LIMIT,
        "limit-set",
        "threads, files and libraries still work after `setrlimit` to 200 MiB of address space",
    ),
    check(
        RUNTIME_LIMIT,
        "limit-filled",
        "blocks of several sizes fill the 200 MiB, one size after the other",
    ),
    check(
        RUNTIME_LIMIT,
        "limit-returned",
        "after freeing those blocks and `malloc_trim`, threads, files and libraries work again",
    ),
    check(
        LOADING,
        "loaded-late",
        "the library is loaded by `dlopen`, closed, and still used",
    )
    .loaded_by_the_program(),
    check(
        LOADING,
        "loads-others",
        "threads allocate while other libraries are loaded and closed",
    ),
];

/// Returns all checks.
#[must_use]
pub fn checks() -> &'static [Check] {
    CHECKS
}
