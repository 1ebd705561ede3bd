//! Tests of `heapdrome record`: the trace must describe exactly the calls that its program made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapdrome_trace::{
    Beginning, Chunk, Ending, Finish, Operation, Process, Reader, Record, Step, Thread,
};

use crate::support::{Outcome, Site, recorded_program};

/// Minimum size in bytes of the blocks that tests count.
pub const COUNTED: u64 = 5000;

/// Contents of a trace.
#[derive(Default)]
pub struct Trace {
    functions: Vec<String>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub finishes: Vec<Finish>,
    pub steps: BTreeMap<u32, Vec<Step>>,
    pub ending: Option<Ending>,
}

impl Trace {
    pub fn read(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("the trace is there");
        let mut reader = Reader::new(file).expect("a trace");
        let functions = reader.recording().functions.clone();
        let mut trace = Self {
            functions,
            ..Self::default()
        };
        while let Some(chunk) = reader.next_chunk().expect("no damage") {
            if let Chunk::Records(records) = &chunk {
                trace.take(records);
            }
            let steps = &mut trace.steps;
            let seen = chunk.visit(|process, step| steps.entry(process).or_default().push(step));
            seen.expect("no damage");
        }
        trace.ending = reader.ending();
        trace
    }

    fn take(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Process(process) => self.processes.push(process.clone()),
                Record::Thread(thread) => self.threads.push(thread.clone()),
                Record::Finish(finish) => self.finishes.push(*finish),
                _ => {}
            }
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.ending, Some(Ending::Complete(_)))
    }

    pub fn name(&self, operation: Operation) -> &str {
        &self.functions[usize::from(operation.function())]
    }

    /// Returns the statistics of a process's counted blocks.
    pub fn blocks(&self, process: u32) -> Blocks {
        let mut blocks = Blocks::default();
        let mut next = 0;
        for step in self.steps.get(&process).into_iter().flatten() {
            blocks.step(step, next);
            next += u64::from(step.operation.makes_block());
        }
        blocks
    }

    /// Returns the numbers of counted blocks that all processes together made, freed, resized and
    /// inherited. Other fields stay empty.
    pub fn all(&self) -> Blocks {
        let each = self
            .processes
            .iter()
            .map(|process| self.blocks(process.process));
        each.fold(Blocks::default(), |mut sum, blocks| {
            sum.made += blocks.made;
            sum.freed += blocks.freed;
            sum.resized += blocks.resized;
            sum.inherited += blocks.inherited;
            sum
        })
    }
}

/// Statistics of the blocks of at least [`COUNTED`] bytes.
#[derive(Debug, Default)]
pub struct Blocks {
    pub made: usize,
    pub freed: usize,
    pub resized: usize,
    pub inherited: usize,
    pub freed_by_others: usize,
    /// Size of each live block and the thread that made it, by the block's number.
    pub live: BTreeMap<u64, (u64, u32)>,
    pub makers: BTreeSet<u32>,
}

impl Blocks {
    fn step(&mut self, step: &Step, next: u64) {
        match step.operation {
            Operation::Make { size, .. } if size >= COUNTED => {
                self.made += 1;
                self.makers.insert(step.thread);
                assert_eq!(self.live.insert(next, (size, step.thread)), None);
            }
            Operation::Free { block, .. } => {
                if let Some((_, maker)) = self.live.remove(&block) {
                    self.freed += 1;
                    self.freed_by_others += usize::from(maker != step.thread);
                }
            }
            Operation::Resize { block, size, .. } if self.live.remove(&block).is_some() => {
                self.resized += 1;
                self.live.insert(next, (size, step.thread));
            }
            Operation::FreeForeign {
                size: Some(COUNTED..),
                ..
            } => self.inherited += 1,
            _ => {}
        }
    }
}

/// Records the program of the fixtures with these arguments, and reads the trace.
pub fn record(site: &Site, arguments: &[&str]) -> (Outcome, Trace) {
    let program = recorded_program();
    let mut all = vec!["record", "-o", "app.trace", "--", &program];
    all.extend(arguments);
    let outcome = site.run(&all);
    let trace = Trace::read(&site.path("app.trace"));
    (outcome, trace)
}

#[test]
fn blocks_that_change_threads_both_ways_are_all_there() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["threads", "30000"]);
    outcome.says(0, &["of 1 process in app.trace"]);
    outcome.says(0, &["the command took ", " afterwards, "]);
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (120_000, 119_996));
    assert_eq!(blocks.live.len(), 4);
    assert_eq!(blocks.makers.len(), 4);
    assert!(blocks.freed_by_others > 0);
    assert!(trace.is_complete());
    assert_eq!(trace.finishes.len(), 1);
    assert!(!trace.finishes[0].gave_up);
    assert!(trace.processes[0].program.ends_with("/recorded"));
    assert!(trace.processes[0].allocator.contains("libc.so"));
}

#[test]
fn a_thousand_short_threads_are_told_apart_and_need_few_rings() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["brief", "1000"]);
    outcome.ends_with(0);
    let blocks = trace.blocks(0);
    assert_eq!(
        (blocks.made, blocks.freed, blocks.freed_by_others),
        (1000, 1000, 0)
    );
    assert_eq!(blocks.makers.len(), 1000);
    assert_eq!(trace.threads.len(), 1001);
}

#[test]
fn chains_of_realloc_keep_their_links() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["chain", "500"]);
    outcome.ends_with(0);
    let blocks = trace.blocks(0);
    assert_eq!(
        (blocks.made, blocks.resized, blocks.freed),
        (500, 5000, 500)
    );
    assert!(blocks.live.is_empty());
}

#[test]
fn alignments_failures_and_frees_of_nothing_are_recorded() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["aligned", "3"]);
    outcome.ends_with(0);
    let mut seen = BTreeMap::<(&str, u64, u64), u32>::new();
    let (mut failed, mut nothing) = (0, 0);
    for step in &trace.steps[&0] {
        match step.operation {
            Operation::Make {
                size, alignment, ..
            } if size >= COUNTED => {
                *seen
                    .entry((trace.name(step.operation), size, alignment))
                    .or_default() += 1;
            }
            Operation::Fail { size, .. } => failed += u32::from(size == u64::MAX - 99),
            Operation::FreeNull { .. } => nothing += 1,
            _ => {}
        }
    }
    let expected = [
        (("aligned_alloc", 5120, 512), 3),
        (("calloc", 6000, 0), 3),
        (("posix_memalign", 5000, 256), 3),
    ];
    assert_eq!(seen, BTreeMap::from(expected));
    assert_eq!(failed, 3);
    assert!(nothing >= 6, "{nothing}");
}

#[test]
fn forked_processes_have_the_blocks_of_their_parents() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["forks", "20"]);
    outcome.says(0, &["of 31 processes"]);
    assert_eq!(trace.processes.len(), 31);
    let all = trace.all();
    // The parent makes one block and frees it, and each child makes one block.
    assert_eq!((all.made, all.freed), (21, 1));
    // Each child frees one block of its parent, and so does each grandchild.
    assert_eq!(all.inherited, 30);
    let forked = trace.processes.iter().filter(|process| {
        matches!(
            process.beginning,
            Beginning::Forked {
                bytes: COUNTED..,
                ..
            }
        )
    });
    assert_eq!(forked.count(), 30);
}

#[test]
fn a_child_inherits_what_its_parent_had_just_made() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["inherit", "10000"]);
    outcome.ends_with(0);
    assert_eq!(trace.blocks(0).made, 10_001, "and the table of blocks");
    assert_eq!(trace.blocks(1).inherited, 10_000);
}

#[test]
fn a_child_that_is_forked_without_handlers_leaves_its_parent_whole() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["bare", "10000"]);
    outcome.says(0, &["of 2 processes"]);
    let (parent, child) = (trace.blocks(0), trace.blocks(1));
    assert_eq!((parent.made, parent.freed), (30_001, 30_001));
    assert_eq!((child.made, child.freed), (20_000, 20_000));
    assert!(trace.is_complete() && child.inherited == 1);
}

#[test]
fn threads_that_outlive_the_first_one_are_recorded() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["outlive", "100000"]);
    outcome.says(0, &["of 1 process in app.trace"]);
    assert_eq!(trace.blocks(0).made, 100_000);
}

#[test]
fn what_a_child_of_vfork_allocates_is_its_parents() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["vforks", "10"]);
    outcome.ends_with(0);
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (10, 10));
}

#[test]
fn each_program_that_a_process_executes_is_one_of_its_own() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["exec", "5"]);
    outcome.says(0, &["of 5 processes"]);
    for process in &trace.processes {
        assert_eq!(trace.blocks(process.process).made, 1);
        assert_eq!(process.beginning, Beginning::Executed);
        assert_eq!(process.pid, trace.processes[0].pid);
    }
    assert_eq!(trace.finishes.len(), 5);
}

#[test]
fn handlers_of_signals_that_allocate_lose_nothing() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["signals", "1"]);
    let handled = outcome
        .stdout
        .trim()
        .rsplit(' ')
        .next()
        .map(str::parse::<usize>);
    let handled = handled.and_then(Result::ok).expect("a number");
    let blocks = trace.blocks(0);
    assert!(handled > 0);
    assert_eq!((blocks.made, blocks.freed), (handled, handled));
}

#[test]
fn a_program_that_is_killed_loses_nothing() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["killed", "10000"]);
    outcome.says(3, &["the command failed: signal: 9"]);
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (10_000, 10_000));
    assert!(trace.is_complete());
}

#[test]
fn daemons_are_waited_for() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["daemon", "30"]);
    outcome.ends_with(0);
    assert_eq!(trace.all().made, 30);
}

#[test]
fn a_recorded_command_runs_under_the_allocator_that_was_asked_for() {
    let site = Site::new();
    let program = recorded_program();
    let arguments = [
        "record",
        "-a",
        "elfmalloc",
        "-o",
        "e.trace",
        "--",
        &program,
        "threads",
        "2000",
    ];
    site.run(&arguments).ends_with(0);
    let trace = Trace::read(&site.path("e.trace"));
    assert!(trace.processes[0].allocator.contains("elfmalloc"));
    assert_eq!(trace.all().made, 8000);
}
