//! Checks of the allocation ABI, from the calls on which every program relies to rare cases. Each
//! small C or C++ program contains several checks.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::source::{BASIC, EXPECTED, Header, Source};

/// Check: a program, and the name that it gets as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Description in one line of Markdown.
    pub what: &'static str,
    /// Lowest level that includes the check.
    pub level: Level,
    /// Program that contains the check.
    pub source: &'static Source,
    /// Limit under which the program runs.
    limit: Option<Limit>,
    /// Whether the library is preloaded; if not, the program loads it itself.
    pub preloaded: bool,
}

/// Limit on memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// Limit on address space.
    AddressSpace(u64),
    /// Limit on private writable memory, touched or not. `RLIMIT_DATA` limits for one process the
    /// same memory that a strict overcommit policy (`vm.overcommit_memory` 2) limits for all.
    Writable(u64),
}

/// Extent of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Calls on which every program relies.
    Basic,
    /// The basic level, every corner of the ABI, limits on memory, and forks beside the C library's
    /// own locks.
    Strict,
}

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

const fn basic(source: &'static Source, name: &'static str, what: &'static str) -> Check {
    Check {
        level: Level::Basic,
        ..check(source, name, what)
    }
}

const fn check(source: &'static Source, name: &'static str, what: &'static str) -> Check {
    Check {
        name,
        what,
        level: Level::Strict,
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
    basic(
        source!("basic_c.c", BASIC),
        "C",
        "400,000 random operations whose contents are verified; corner cases; the C library's own calls",
    ),
    basic(
        source!("basic_cxx.cpp", BASIC),
        "C++",
        "every `operator new` and `delete`, containers, exceptions, thread-local objects",
    ),
    basic(
        source!("basic_threads.c", BASIC),
        "threads",
        "four threads that free each other's objects; threads that come and go",
    ),
    basic(
        source!("basic_aligned.c", BASIC),
        "aligned",
        "every function for aligned memory, with every alignment up to 4 MiB",
    ),
    basic(
        source!("basic_fork.c", BASIC),
        "fork",
        "forks 300 times while three threads allocate; each child goes on to allocate",
    ),
    basic(
        source!("basic_exhaustion.cpp", BASIC),
        "exhaustion",
        "asks for more than there can be, and must be told so",
    ),
    check(
        EXPORTS,
        "exports",
        "every name of the C and C++ ABI is the library's own, and does what it is for",
    )
    .with(WRITABLE),
    check(
        ABI,
        "errno-kept",
        "`errno` is kept where calls succeed, and by `free`",
    ),
    check(ABI, "overflow", "products that overflow are refused"),
    check(
        ABI,
        "too-large",
        "sizes that no memory can have are refused",
    ),
    check(
        ABI,
        "unique-empty",
        "blocks of no bytes have addresses of their own",
    ),
    check(
        ABI,
        "posix-memalign-errors",
        "`posix_memalign` says what is wrong, and writes nothing then",
    ),
    check(ABI, "realloc-to-nothing", "`realloc` to no bytes frees"),
    check(ABI, "alignment", "every alignment by every function"),
    check(ABI, "zeroing", "`calloc` gives zeros, in used memory too"),
    check(ABI, "usable-size", "all usable bytes can be used"),
    check(
        ABI,
        "usable-empty",
        "a block of no bytes has a usable byte, by every function",
    ),
    check(
        ABI,
        "extreme-alignment",
        "every aligned function with every power of two up to 2^63: a block, or null and `ENOMEM`",
    ),
    check(
        ABI,
        "realloc-boundaries",
        "contents are kept over every boundary of `realloc`",
    ),
    check(
        ABI,
        "information",
        "`mallinfo2`, `malloc_info`, `mallopt`, `malloc_trim` answer",
    ),
    check(ABI, "page-aligned", "`valloc` and `pvalloc`"),
    check(
        ABI,
        "no-cxx-runtime",
        "no C++ library comes into a C program",
    ),
    check(
        CXX,
        "new-handler",
        "`operator new` calls its handler until there is memory",
    ),
    check(CXX, "bad-alloc", "`operator new` throws what it should"),
    check(CXX, "handler-throws", "what the handler throws arrives"),
    check(CXX, "nothrow", "`nothrow` forms answer null"),
    check(
        CXX,
        "nothrow-handler-throws",
        "they do where the handler throws",
    ),
    check(CXX, "aligned-new", "aligned forms of `operator new`"),
    check(
        CXX,
        "extreme-new",
        "aligned forms of `operator new` with every power of two up to 2^63 throw or answer null",
    ),
    check(
        LIFETIME,
        "static-lifetime",
        "static constructors and destructors, and `atexit` handlers, allocate",
    ),
    check(
        LIFETIME,
        "tls-destructors",
        "destructors of thread-local objects allocate and free",
    ),
    check(
        THREADS,
        "key-destructors",
        "destructors of `pthread_key`s do, 60 keys in 400 threads",
    ),
    check(
        THREADS,
        "many-threads",
        "10000 threads come and go, and leave nothing",
    ),
    check(THREADS, "silent-threads", "8000 that allocate nothing, too"),
    check(
        THREADS,
        "outliving-blocks",
        "blocks outlive their threads, freed or grown by others",
    ),
    check(
        FORK,
        "fork-busy",
        "60 forks of four busy threads; the children allocate, free and start threads",
    ),
    check(
        FORK,
        "fork-handlers",
        "the same with `pthread_atfork` handlers that allocate",
    ),
    check(
        FORK,
        "fork-locked",
        "the same with handlers that take a lock under which a thread allocates",
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
        "256 MiB of addresses used up by small blocks, freed, used again",
    )
    .with(ADDRESSES),
    check(EXHAUSTION, "exhaustion-large", "by large ones").with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-sizes",
        "by blocks of one size after the other",
    )
    .with(ADDRESSES),
    check(EXHAUSTION, "exhaustion-threads", "by several threads").with(ADDRESSES),
    check(
        CXX_EXHAUSTION,
        "exhaustion-throws",
        "by `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        EXHAUSTION,
        "exhaustion-aligned",
        "by aligned blocks of every function",
    )
    .with(ADDRESSES),
    check(
        CXX_EXHAUSTION,
        "exhaustion-throws-aligned",
        "by aligned `operator new`, with a handler that frees",
    )
    .with(ADDRESSES),
    check(
        THREADS,
        "start-in-little",
        "starts there, with eight threads",
    )
    .with(ADDRESSES),
    check(
        THREADS,
        "committed-start",
        "starts with 256 MiB that may be written",
    )
    .with(WRITABLE),
    check(
        EXHAUSTION,
        "committed-small",
        "those used up by small blocks",
    )
    .with(WRITABLE),
    check(EXHAUSTION, "committed-large", "by large ones").with(WRITABLE),
    check(EXHAUSTION, "committed-mixed", "by both").with(WRITABLE),
    check(
        RUNTIME_LIMIT,
        "limit-set",
        "after `setrlimit` to 200 MiB of addresses, threads, files and libraries find room",
    ),
    check(
        RUNTIME_LIMIT,
        "limit-filled",
        "those 200 MiB used up by blocks of several sizes, one after the other",
    ),
    check(
        RUNTIME_LIMIT,
        "limit-returned",
        "after that and `malloc_trim`, threads, files and libraries find room again",
    ),
    check(
        LOADING,
        "loaded-late",
        "the library loaded by `dlopen`, closed, and used on",
    )
    .loaded_by_the_program(),
    check(
        LOADING,
        "loads-others",
        "other libraries loaded and closed beside it",
    ),
];

/// Returns all checks.
#[must_use]
pub fn checks() -> &'static [Check] {
    CHECKS
}

impl Check {
    /// Returns the command that runs the check, given the compiled program. The caller preloads the
    /// library if [`preloaded`](Self::preloaded) is set.
    #[must_use]
    pub fn command(&self, program: &Path, library: Option<&Path>) -> Command {
        let mut command = Command::new(program);
        command.arg(self.name).args(library);
        command.envs(library.map(|library| (EXPECTED, library)));
        if let Some(limit) = self.limit {
            // SAFETY: between fork and exec, only the system call setrlimit runs.
            unsafe { command.pre_exec(move || set(limit)) };
        }
        command
    }
}

fn set(limit: Limit) -> io::Result<()> {
    let (what, bytes) = match limit {
        Limit::AddressSpace(bytes) => (libc::RLIMIT_AS, bytes),
        Limit::Writable(bytes) => (libc::RLIMIT_DATA, bytes),
    };
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the limit is a local variable.
    if unsafe { libc::setrlimit(what, &raw const limit) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
