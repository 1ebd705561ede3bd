//! The corners of the ABI, one small C or C++ program for each few.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;

/// A check: a program, and the name that it is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
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
    Fork,
    Lifetime,
    Loading,
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
            Self::Fork => ("fork.c", include_str!("../programs/fork.c")),
            Self::Lifetime => ("lifetime.cpp", include_str!("../programs/lifetime.cpp")),
            Self::Loading => ("loading.c", include_str!("../programs/loading.c")),
            Self::Threads => ("threads.c", include_str!("../programs/threads.c")),
        }
    }
}

const ADDRESSES: Limit = Limit::AddressSpace(256 << 20);
const WRITABLE: Limit = Limit::Writable(256 << 20);

const fn check(name: &'static str, source: Source) -> Check {
    Check {
        name,
        source,
        limit: None,
        preloaded: true,
    }
}

const fn limited(name: &'static str, source: Source, limit: Limit) -> Check {
    Check {
        name,
        source,
        limit: Some(limit),
        preloaded: true,
    }
}

const CHECKS: &[Check] = &[
    check("errno-kept", Source::Abi),
    check("overflow", Source::Abi),
    check("too-large", Source::Abi),
    check("unique-empty", Source::Abi),
    check("posix-memalign-errors", Source::Abi),
    check("realloc-to-nothing", Source::Abi),
    check("alignment", Source::Abi),
    check("zeroing", Source::Abi),
    check("usable-size", Source::Abi),
    check("realloc-boundaries", Source::Abi),
    check("information", Source::Abi),
    check("page-aligned", Source::Abi),
    check("no-cxx-runtime", Source::Abi),
    check("new-handler", Source::Cxx),
    check("bad-alloc", Source::Cxx),
    check("handler-throws", Source::Cxx),
    check("nothrow", Source::Cxx),
    check("nothrow-handler-throws", Source::Cxx),
    check("aligned-new", Source::Cxx),
    check("static-lifetime", Source::Lifetime),
    check("tls-destructors", Source::Lifetime),
    check("key-destructors", Source::Threads),
    check("many-threads", Source::Threads),
    check("outliving-blocks", Source::Threads),
    check("fork", Source::Fork),
    check("fork-handlers", Source::Fork),
    limited("exhaustion-small", Source::Exhaustion, ADDRESSES),
    limited("exhaustion-large", Source::Exhaustion, ADDRESSES),
    limited("exhaustion-threads", Source::Exhaustion, ADDRESSES),
    limited("exhaustion-throws", Source::CxxExhaustion, ADDRESSES),
    limited("start-in-little", Source::Threads, ADDRESSES),
    limited("committed-start", Source::Threads, WRITABLE),
    limited("committed-small", Source::Exhaustion, WRITABLE),
    limited("committed-large", Source::Exhaustion, WRITABLE),
    limited("committed-mixed", Source::Exhaustion, WRITABLE),
    Check {
        name: "loaded-late",
        source: Source::Loading,
        limit: None,
        preloaded: false,
    },
    check("loads-others", Source::Loading),
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
        let program = folder.join(file).with_extension("program");
        if program.exists() {
            return Ok(program);
        }
        let source = folder.join(file);
        std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
        let mut compiler = if file.ends_with(".cpp") {
            let mut compiler = Command::new("g++");
            compiler.args(["-std=c++17", "-faligned-new", "-Wno-nonnull"]);
            compiler
        } else {
            Command::new("gcc")
        };
        // The compiler must not know what these functions do, or it leaves the calls out.
        compiler.args([
            "-O1",
            "-g",
            "-fno-builtin",
            "-Wno-alloc-size-larger-than",
            "-pthread",
        ]);
        compiler.arg("-o").arg(&program).arg(&source).arg("-ldl");
        child::run(&mut compiler, Duration::from_secs(120))
            .map_err(|what| format!("{file} does not compile: {what}"))?;
        Ok(program)
    }
}
