//! Tests of `heapdrome record` under other allocators: a trace has the program's calls, whichever
//! allocator lies beneath the recorder.

use std::path::{Path, PathBuf};

use heapdrome_trace::{Operation, Step};

use crate::record::Trace;
use crate::support::{Site, forwarding_allocator, news_program, recorded_program};

/// Variable that names further allocators' libraries, separated by colons.
const FURTHER: &str = "ALLOCATORS";

/// Libraries of other allocators, by the names that distributions give them.
const INSTALLED: [&str; 4] = [
    "libjemalloc.so.2",
    "libmimalloc.so.2",
    "libtcmalloc_minimal.so.4",
    "libtcmalloc.so.4",
];

/// Returns the folders in which distributions install libraries.
fn folders() -> impl Iterator<Item = PathBuf> {
    let triple = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    ["/usr/local/lib", "/usr/lib64", "/usr/lib", &triple]
        .map(PathBuf::from)
        .into_iter()
}

/// Returns the libraries of [`INSTALLED`] that are here, then those that [`FURTHER`] names. Prints
/// the names of missing ones.
fn installed() -> Vec<String> {
    let mut libraries = Vec::new();
    for name in INSTALLED {
        match folders()
            .map(|folder| folder.join(name))
            .find(|path| path.exists())
        {
            Some(path) => libraries.push(path.display().to_string()),
            None => println!("skipped: {name} is not installed"),
        }
    }
    let further = std::env::var(FURTHER).unwrap_or_default();
    libraries.extend(further.split_terminator(':').map(str::to_owned));
    libraries
}

/// A call: function, size, alignment, and the number of the block that it frees or resizes.
type Call = (String, u64, u64, Option<u64>);

/// The calls of a program, without those that load the allocator.
struct Calls {
    /// The object that served the calls.
    allocator: String,
    /// Number of operations before the program's first request.
    loading: usize,
    program: Vec<Call>,
}

/// Size of the blocks that the program requests first.
const FIRST: u64 = 5000;

impl Calls {
    fn read(path: &Path) -> Self {
        let trace = Trace::read(path);
        let steps = &trace.steps[&0];
        let size = |operation| match operation {
            Operation::Make { size, .. } => Some(size),
            _ => None,
        };
        let first = steps
            .iter()
            .position(|step| size(step.operation) == Some(FIRST));
        let (loading, program) = steps.split_at(first.expect("the program's first call"));
        let made = loading.iter().filter(|step| step.operation.makes_block());
        let made = made.count() as u64;
        let call = |operation: Operation| {
            let (size, alignment, block) = match operation {
                Operation::Make {
                    size, alignment, ..
                }
                | Operation::Fail {
                    size, alignment, ..
                } => (size, alignment, None),
                Operation::Resize { size, block, .. } => (size, 0, Some(block - made)),
                Operation::Free { block, .. } => (0, 0, Some(block - made)),
                Operation::FreeNull { .. } | Operation::FreeForeign { .. } => (0, 0, None),
            };
            (trace.name(operation).to_owned(), size, alignment, block)
        };
        Self {
            allocator: trace.processes[0].allocator.clone(),
            loading: loading.len(),
            program: program.iter().map(|step| call(step.operation)).collect(),
        }
    }
}

/// Way in which an allocator is loaded beneath the recorder.
#[derive(Clone, Copy, Debug)]
enum Beneath<'a> {
    /// By `-a`.
    Named(&'a str),
    /// By `LD_PRELOAD`.
    Preloaded(&'a str),
}

/// Records the program with the argument `way`, on top of the allocator `beneath`.
fn record(site: &Site, way: &str, beneath: Beneath<'_>) -> Calls {
    let program = recorded_program();
    let (options, preloaded) = match beneath {
        Beneath::Named(name) => (["-a", name].to_vec(), None),
        Beneath::Preloaded(library) => (Vec::new(), Some(library)),
    };
    let start = ["record", "--force", "-o", "a.trace"];
    let words = [&start[..], &options, &["--", &program, way, "50"]].concat();
    let mut command = site.command(&words);
    command.envs(preloaded.map(|library| ("LD_PRELOAD", library)));
    site.finish(command).ends_with(0);
    Calls::read(&site.path("a.trace"))
}

/// Arguments with which the program makes all calls in one thread.
const WAYS: [&str; 2] = ["chain", "aligned"];

#[test]
fn a_program_makes_the_same_calls_under_every_allocator() {
    let site = Site::new();
    let installed = installed();
    for way in WAYS {
        let expected = record(&site, way, Beneath::Named("system"));
        assert!(expected.program.len() > 400);
        assert_eq!(expected.loading, 0);
        let mut libraries = installed.clone();
        for name in ["elfmalloc", "bumpmalloc"] {
            let calls = record(&site, way, Beneath::Named(name));
            assert!(calls.allocator.contains(name), "{}", calls.allocator);
            assert!(calls.program == expected.program, "{way} under {name}");
            libraries.push(calls.allocator);
        }
        for library in &libraries {
            for beneath in [Beneath::Named(library), Beneath::Preloaded(library)] {
                let calls = record(&site, way, beneath);
                assert_eq!(&calls.allocator, library);
                // An allocator in C++ loads libstdc++, which requests a reserve of memory for
                // exceptions before the program's first request.
                assert!(calls.loading <= 1, "{way}, {beneath:?}: {}", calls.loading);
                assert!(calls.program == expected.program, "{way}, {beneath:?}");
            }
        }
    }
}

/// About 80 of the calls to delete are timed. The recorder calls the allocator for a timed call,
/// and jumps to the allocator for any other call. In both cases, the trace must have one call for
/// each delete.
#[test]
fn a_delete_that_jumps_to_free_is_one_call_even_if_it_is_timed() {
    let (site, allocator) = (Site::new(), forwarding_allocator());
    let allocator = allocator.to_str().expect("a plain path");
    let words = ["record", "-o", "a.trace", "-a", allocator, "--"];
    let outcome = site.run(&[&words[..], &[&news_program()]].concat());
    outcome.ends_with(0);
    let trace = Trace::read(&site.path("a.trace"));
    let calls = |name: &str| {
        let mut steps = trace.steps[&0].iter();
        let is_named = |step: &&Step| trace.name(step.operation) == name;
        steps.by_ref().filter(is_named).count()
    };
    assert_eq!(["_Znwm", "_ZdlPv", "free"].map(calls), [20_000, 20_000, 0]);
    let timed = trace.finishes[0].timed.expect("timed calls");
    assert!(timed.calls + timed.interrupted > 80, "{timed:?}");
}
