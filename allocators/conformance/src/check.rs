//! The corners of the ABI, one small C or C++ program for each few.

use std::path::{Path, PathBuf};

use crate::compile::compile;

/// A check: a program, and the name that it is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// What that is, in a line of Markdown.
    pub what: &'static str,
    source: Source,
    /// What the program gets no more of.
    pub(crate) limit: Option<Limit>,
    /// Whether the library is preloaded; otherwise the program loads it itself.
    pub(crate) preloaded: bool,
}

/// A limit on memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// On address space.
    AddressSpace(u64),
    /// On private memory that may be written, touched or not: what a strict overcommit policy
    /// (`vm.overcommit_memory` 2) counts for all processes, `RLIMIT_DATA` counts for one.
    Writable(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Abi,
    Cxx,
    Exhaustion,
    CxxExhaustion,
    Exports,
    Fork,
    ForkStdio,
    ForkStreams,
    Lifetime,
    Loading,
    RuntimeLimit,
    Signals,
    Threads,
}

impl Source {
    const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Abi => ("abi.c", include_str!("../programs/abi.c")),
            Self::Cxx => ("cxx.cpp", include_str!("../programs/cxx.cpp")),
            Self::Exhaustion => ("exhaustion.c", include_str!("../programs/exhaustion.c")),
            Self::CxxExhaustion => (
                "cxx_exhaustion.cpp",
                include_str!("../programs/cxx_exhaustion.cpp"),
            ),
            Self::Exports => ("exports.c", include_str!("../programs/exports.c")),
            Self::Fork => ("fork.c", include_str!("../programs/fork.c")),
            Self::ForkStdio => ("fork_stdio.c", include_str!("../programs/fork_stdio.c")),
            Self::ForkStreams => (
                "fork_streams.cpp",
                include_str!("../programs/fork_streams.cpp"),
            ),
            Self::Lifetime => ("lifetime.cpp", include_str!("../programs/lifetime.cpp")),
            Self::Loading => ("loading.c", include_str!("../programs/loading.c")),
            Self::RuntimeLimit => (
                "runtime_limit.c",
                include_str!("../programs/runtime_limit.c"),
            ),
            Self::Signals => ("signals.c", include_str!("../programs/signals.c")),
            Self::Threads => ("threads.c", include_str!("../programs/threads.c")),
        }
    }
}

const ADDRESSES: Limit = Limit::AddressSpace(256 << 20);
const WRITABLE: Limit = Limit::Writable(256 << 20);

const fn check(source: Source, name: &'static str, what: &'static str) -> Check {
    Check {
        name,
        what,
        source,
        limit: None,
        preloaded: true,
    }
}

impl Check {
    const fn with(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    const fn loaded_by_the_program(mut self) -> Self {
        self.preloaded = false;
        self
    }
}

const CHECKS: &[Check] = &[
    check(
        Source::Exports,
        "exports",
        "every name of the C and C++ ABI is the library's own, and does what it is for",
    )
    .with(WRITABLE),
    check(
        Source::Abi,
        "errno-kept",
        "`errno` is kept where calls succeed, and by `free`",
    ),
    check(
        Source::Abi,
        "overflow",
        "products that overflow are refused",
    ),
    check(
        Source::Abi,
        "too-large",
        "sizes that no memory can have are refused",
    ),
    check(
        Source::Abi,
        "unique-empty",
        "blocks of no bytes have addresses of their own",
    ),
    check(
        Source::Abi,
        "posix-memalign-errors",
        "`posix_memalign` says what is wrong, and writes nothing then",
    ),
    check(
        Source::Abi,
        "realloc-to-nothing",
        "`realloc` to no bytes frees",
    ),
    check(
        Source::Abi,
        "alignment",
        "every alignment by every function",
    ),
    check(
        Source::Abi,
        "zeroing",
        "`calloc` gives zeros, in used memory too",
    ),
    check(Source::Abi, "usable-size", "all usable bytes can be used"),
    check(
        Source::Abi,
        "usable-empty",
        "a block of no bytes has a usable byte, by every function",
    ),
    check(
        Source::Abi,
        "extreme-alignment",
        "every aligned function with every power of two up to 2^63: a block, or null and `ENOMEM`",
    ),
    check(
        Source::Abi,
        "realloc-boundaries",
        "contents are kept over every boundary of `realloc`",
    ),
    check(
        Source::Abi,
        "information",
        "`mallinfo2`, `malloc_info`, `mallopt`, `malloc_trim` answer",
    ),
    check(Source::Abi, "page-aligned", "`valloc` and `pvalloc`"),
    check(
        Source::Abi,
        "no-cxx-runtime",
        "no C++ library comes into a C program",
    ),
    check(
        Source::Cxx,
        "new-handler",
        "`operator new` calls its handler until there is memory",
    ),
    check(
        Source::Cxx,
        "bad-alloc",
        "`operator new` throws what it should",
    ),
    check(
        Source::Cxx,
        "handler-throws",
        "what the handler throws arrives",
    ),
    check(Source::Cxx, "nothrow", "`nothrow` forms answer null"),
    check(
        Source::Cxx,
        "nothrow-handler-throws",
        "they do where the handler throws",
    ),
    check(
        Source::Cxx,
        "aligned-new",
        "aligned forms of `operator new`",
    ),
    check(
        Source::Cxx,
        "extreme-new",
        "aligned forms of `operator new` with every power of two up to 2^63 throw or answer null",
    ),
    check(
        Source::Lifetime,
        "static-lifetime",
        "static constructors and destructors, and `atexit` handlers, allocate",
    ),
    check(
        Source::Lifetime,
        "tls-destructors",
        "destructors of thread-local objects allocate and free",
    ),
    check(
        Source::Threads,
        "key-destructors",
        "destructors of `pthread_key`s do, 60 keys in 400 threads",
    ),
    check(
        Source::Threads,
        "many-threads",
        "10000 threads come and go, and leave nothing",
    ),
    check(
        Source::Threads,
        "silent-threads",
        "8000 that allocate nothing, too",
    ),
    check(
        Source::Threads,
        "outliving-blocks",
        "blocks outlive their threads, freed or grown by others",
    ),
    check(
        Source::Fork,
        "fork",
        "60 forks of four busy threads; the children allocate, free and start threads",
    ),
    check(
        Source::Fork,
        "fork-handlers",
        "the same with `pthread_atfork` handlers that allocate",
    ),
    check(
        Source::Fork,
        "fork-locked",
        "the same with handlers that take a lock under which a thread allocates",
    ),
    check(
        Source::ForkStdio,
        "fork-stdio",
        "four threads fork beside `getline`, `fflush(NULL)`, `dlopen`, `tzset` and others",
    ),
    check(
        Source::ForkStreams,
        "fork-streams",
        "four threads fork beside C++ streams, exceptions and `fflush(NULL)`",
    ),
    check(
        Source::Signals,
        "signals",
        "signals interrupt four busy threads",
    ),
    check(
        Source::Exhaustion,
        "exhaustion-small",
        "256 MiB of addresses used up by small blocks, freed, used again",
    )
    .with(ADDRESSES),
    check(Source::Exhaustion, "exhaustion-large", "by large ones").with(ADDRESSES),
    check(
        Source::Exhaustion,
        "exhaustion-sizes",
        "by blocks of one size after the other",
    )
    .with(ADDRESSES),
    check(
        Source::Exhaustion,
        "exhaustion-threads",
        "by several threads",
    )
    .with(ADDRESSES),
    check(
        Source::CxxExhaustion,
        "exhaustion-throws",
        "by `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        Source::Exhaustion,
        "exhaustion-aligned",
        "by aligned blocks of every function",
    )
    .with(ADDRESSES),
    check(
        Source::CxxExhaustion,
        "exhaustion-throws-aligned",
        "by aligned `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        Source::Threads,
        "start-in-little",
        "starts there, with eight threads",
    )
    .with(ADDRESSES),
    check(
        Source::Threads,
        "committed-start",
        "starts with 256 MiB that may be written",
    )
    .with(WRITABLE),
    check(
        Source::Exhaustion,
        "committed-small",
        "those used up by small blocks",
    )
    .with(WRITABLE),
    check(Source::Exhaustion, "committed-large", "by large ones").with(WRITABLE),
    check(Source::Exhaustion, "committed-mixed", "by both").with(WRITABLE),
    check(
        Source::RuntimeLimit,
        "limit-set",
        "after `setrlimit` to 200 MiB of addresses, threads, files and libraries find room",
    ),
    check(
        Source::RuntimeLimit,
        "limit-filled",
        "those 200 MiB used up by blocks of several sizes, one after the other",
    ),
    check(
        Source::RuntimeLimit,
        "limit-returned",
        "after that and `malloc_trim`, threads, files and libraries find room again",
    ),
    check(
        Source::Loading,
        "loaded-late",
        "the library loaded by `dlopen`, closed, and used on",
    )
    .loaded_by_the_program(),
    check(
        Source::Loading,
        "loads-others",
        "other libraries loaded and closed beside it",
    ),
];

/// All checks.
#[must_use]
pub fn checks() -> &'static [Check] {
    CHECKS
}

impl Check {
    /// Compiles the check's program into a folder, unless it is there.
    ///
    /// # Errors
    ///
    /// What the compiler said.
    pub(crate) fn compile(&self, folder: &Path) -> Result<PathBuf, String> {
        let (file, text) = self.source.file();
        compile(folder, file, text)
    }
}
