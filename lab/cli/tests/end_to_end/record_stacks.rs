//! Tests of `heapdrome record --stacks`: each stack is the chain of calls that led to its block.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use heapdrome_trace::{Chunk, Module, Operation, Reader, Record, Stack, Step};

use crate::support::{Outcome, Site, opened_library, recorded_program, stacks_program};

/// Minimum size in bytes of the blocks that tests check.
const COUNTED: u64 = 5000;

/// The chain of calls that allocates, innermost first.
const CHAIN: [&str; 3] = ["inner", "middle", "outer"];

/// The steps of a trace, with the data that their stacks refer to.
#[derive(Default)]
struct Trace {
    modules: Vec<Module>,
    stacks: Vec<Stack>,
    steps: Vec<Step>,
    symbols: BTreeMap<u32, BTreeMap<u64, String>>,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("the trace is there");
        let mut reader = Reader::new(file).expect("a trace");
        let mut trace = Self::default();
        while let Some(chunk) = reader.next_chunk().expect("no damage") {
            if let Chunk::Records(records) = &chunk {
                for record in records {
                    match record {
                        Record::Module(module) => trace.modules.push(module.clone()),
                        Record::Stack(stack) => trace.stacks.push(stack.clone()),
                        _ => {}
                    }
                }
            }
            let steps = &mut trace.steps;
            chunk.visit(|_, step| steps.push(step)).expect("no damage");
        }
        for module in &trace.modules {
            let symbols = symbols(&module.path);
            trace.symbols.insert(module.module, symbols);
        }
        trace
    }

    /// Returns the steps that request a counted block.
    fn requests(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| {
            matches!(step.operation, Operation::Make { size, .. } | Operation::Resize { size, .. }
                if size >= COUNTED)
        })
    }

    /// Returns the names of the functions on each stack of a counted block; empty for a block
    /// without a stack.
    fn names(&self) -> Vec<Vec<&str>> {
        let names = |step: &Step| {
            let stack = step.stack.map(|stack| &self.stacks[stack as usize]);
            let frames = stack.map_or(&[][..], |stack| &stack.frames);
            frames.iter().map(|frame| {
                let symbols = frame.module.and_then(|module| self.symbols.get(&module));
                let symbol = symbols.and_then(|it| it.range(..=frame.address).next_back());
                symbol.map_or("", |(_, name)| name)
            })
        };
        self.requests().map(|step| names(step).collect()).collect()
    }
}

/// Returns the functions that a file defines, by their addresses.
fn symbols(path: &str) -> BTreeMap<u64, String> {
    let output = Command::new("nm")
        .arg(path)
        .output()
        .expect("nm is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let symbol = |line: &str| {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_function = ["t", "T"].contains(&words.next()?);
        is_function.then_some((address, words.next()?.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

fn record(site: &Site, options: &[&str], command: &[&str]) -> (Outcome, Trace) {
    let mut all = vec!["record", "-o", "app.trace"];
    all.extend(options);
    all.push("--");
    all.extend(command);
    let outcome = site.run(&all);
    outcome.ends_with(0);
    let trace = Trace::read(&site.path("app.trace"));
    (outcome, trace)
}

/// Asserts that there are `number` counted blocks, and that the stack of each begins with the
/// chain, followed by `callers`.
fn assert_chains(trace: &Trace, number: usize, callers: &[&str]) {
    let expected: Vec<&str> = CHAIN.iter().chain(callers).copied().collect();
    let names = trace.names();
    assert_eq!(names.len(), number);
    for names in names {
        assert_eq!(
            names.get(..expected.len()),
            Some(&expected[..]),
            "{names:?}"
        );
    }
}

fn check(way: &str, number: &str, blocks: usize, callers: &[&str]) {
    let site = Site::new();
    let program = stacks_program();
    let (outcome, trace) = record(&site, &["--stacks=1"], &[&program, way, number]);
    assert_chains(&trace, blocks, callers);
    assert!(!outcome.stderr.contains("lost"), "{}", outcome.stderr);
    // Each module has its build id, and equal stacks are written once.
    assert!(
        trace
            .modules
            .iter()
            .all(|module| module.build_id.len() >= 16)
    );
    let mut frames: Vec<_> = trace.stacks.iter().map(|stack| &stack.frames).collect();
    frames.sort();
    assert!(frames.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_limit_on_files_that_comes_late_does_not_end_the_program() {
    let site = Site::new();
    let program = recorded_program();
    record(&site, &["--stacks=1"], &[&program, "limited"]);
}

#[test]
fn a_chain_of_calls_is_the_stack() {
    check("chain", "3", 3, &["main"]);
}

#[test]
fn more_stacks_than_a_ring_holds_are_all_there() {
    check("chain", "3000", 3000, &["main"]);
}

#[test]
fn the_stacks_of_threads_begin_where_they_do() {
    check("thread", "1", 1, &["on_thread"]);
}

#[test]
fn a_child_of_fork_has_stacks_of_its_own() {
    check("fork", "1", 1, &["main"]);
}

#[test]
fn handlers_on_stacks_of_their_own_are_unwound() {
    check("signals", "20", 20, &["on_signal"]);
}

#[test]
fn coroutines_are_unwound() {
    check("coroutines", "20", 20, &["on_coroutine"]);
}

#[test]
fn the_innermost_frames_of_a_deep_recursion_are_kept() {
    let callers = [["deep"; Stack::MAX_FRAMES - CHAIN.len()].as_slice()].concat();
    check("deep", "300", 1, &callers);
}

#[test]
fn a_library_that_was_opened_later_is_on_the_stack() {
    let site = Site::new();
    let (program, library) = (stacks_program(), opened_library());
    let library = library.to_str().expect("plain");
    let (outcome, trace) = record(&site, &["--stacks=1"], &[&program, "opens", library]);
    assert!(!outcome.stderr.contains("not known"), "{}", outcome.stderr);
    let names = trace.names();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0][..3], ["get", "opens", "main"]);
}

#[test]
fn sampled_stacks_stand_for_all_calls() {
    let site = Site::new();
    let program = recorded_program();
    for (options, mean) in [
        (&["--stacks=50000"][..], 50_000.0),
        (&["--sample", "20000", "--stacks=50000"], 50_000.0),
        (&["--sample", "50000", "--stacks=20000"], 50_000.0),
    ] {
        let mut all = options.to_vec();
        all.push("--force");
        let (_, trace) = record(&site, &all, &[&program, "chain", "5000"]);
        let (mut number, mut variance) = (0.0, 0.0);
        for step in trace.requests().filter(|step| step.stack.is_some()) {
            if let Operation::Make { size, .. } | Operation::Resize { size, .. } = step.operation {
                let share = 1.0 - (-(size as f64) / mean).exp();
                number += 1.0 / share;
                variance += (1.0 - share) / (share * share);
            }
        }
        // Each chain requests a block and ten successors. Five standard deviations are exceeded
        // once in 1.7 million tests.
        let error = (number - 55_000.0) / f64::sqrt(variance);
        assert!(
            error.abs() < 5.0,
            "{options:?}: {number}, {error} standard deviations"
        );
    }
}

#[test]
fn what_is_no_distance_of_stacks_is_refused_in_one_line() {
    let site = Site::new();
    for wrong in ["--stacks=0", "--stacks=many"] {
        let outcome = site.run(&["record", wrong, "--", "true"]);
        outcome.says(
            2,
            &["expected a number of bytes, such as 512KiB, or 1 for the stack"],
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}
