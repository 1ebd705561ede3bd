//! First pass over a process: finds its threads, the blocks that are resized, and the blocks that
//! one thread makes and another frees, if the second thread must first wait for the first.

use heapdrome_trace::{Operation, Step};

use super::blocks::Blocks;
use super::table::{Numbers, Table};
use crate::options::Speed;
use crate::words::MAIN;

/// Maximum number of entries of a table `known` that a waiting thread copies. It copies no part of
/// a larger table.
const SHARED: usize = 16;

/// Result of the first pass, for the second one.
#[derive(Default)]
pub(super) struct Survey {
    /// Position, among all steps, of each thread's last step. Threads are numbered in the order of
    /// their first steps.
    pub(super) last: Vec<u64>,
    /// Blocks whose making is announced to other threads.
    pub(super) published: Bits,
    /// Blocks that a later step resizes.
    pub(super) resized: Bits,
}

/// A set of block numbers.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    /// Returns whether a number is in the set.
    pub(super) fn has(&self, number: u64) -> bool {
        let word = self.0.get((number / 64) as usize);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// State of a thread during the survey.
#[derive(Default)]
struct Thread {
    steps: u64,
    /// For each other thread, its latest step that this thread knows to be done.
    known: Table<u32, u64>,
    /// Value of `steps` when this thread last learnt of another thread's steps.
    learnt: u64,
}

/// State of the survey, which takes the steps one by one.
pub(super) struct Surveyor {
    survey: Survey,
    speed: Speed,
    steps: u64,
    numbers: Numbers,
    threads: Vec<Thread>,
    /// For each live block that may be published, the thread that made it and the number of the
    /// thread's step.
    live: Blocks<(u32, u64)>,
}

impl Surveyor {
    pub(super) fn new(speed: Speed) -> Self {
        Self {
            survey: Survey::default(),
            speed,
            steps: 0,
            numbers: Numbers::default(),
            threads: Vec::new(),
            live: Blocks::default(),
        }
    }

    pub(super) fn finish(self) -> Survey {
        self.survey
    }

    /// Surveys a step. `block` is the number of the block that the step makes, if any.
    pub(super) fn step(&mut self, step: Step, block: u64) {
        let thread = match self.numbers.get(step.thread) {
            Some(thread) => thread,
            None => self.start(step.thread),
        };
        self.survey.last[thread as usize] = self.steps;
        self.steps += 1;
        if let Operation::Resize { block, .. } = step.operation {
            self.survey.resized.set(block);
        }
        // A locked replay publishes every switch between threads, so no block needs a publication.
        if self.speed == Speed::Locked {
            return;
        }
        let own = &mut self.threads[thread as usize];
        own.steps += 1;
        let steps = own.steps;
        // All other threads start later, and therefore know these blocks of the first thread.
        if self.threads.len() == 1 {
            return;
        }
        if let Operation::Free { block, .. } | Operation::Resize { block, .. } = step.operation
            && let Some((maker, made)) = self.live.remove(block)
            && maker != thread
            && !self.knows(thread, maker, made)
        {
            self.survey.published.set(block);
            self.learn(thread, maker, made);
        }
        if step.operation.makes_block() {
            self.live.insert(block, (thread, steps));
        }
    }

    /// Adds a thread and returns its number. The first thread starts all others, so each of them
    /// knows the steps that the first thread has done by then.
    fn start(&mut self, name: u32) -> u32 {
        let thread = self.threads.len() as u32;
        self.numbers.add(name);
        self.threads.push(Thread::default());
        self.survey.last.push(self.steps);
        if thread != MAIN {
            let steps = self.threads[MAIN as usize].steps;
            self.learn(thread, MAIN, steps);
        }
        thread
    }

    fn knows(&self, thread: u32, other: u32, step: u64) -> bool {
        let known = self.threads[thread as usize].known.get(&other);
        known.is_some_and(|known| *known >= step)
    }

    /// Records that `thread` waits until `other` has done `step`. If possible, also adds the
    /// knowledge that `other` had at that step to that of `thread`.
    fn learn(&mut self, thread: u32, other: u32, step: u64) {
        let theirs = &self.threads[other as usize];
        // Share the knowledge of `other` only if `other` learnt nothing after `step`: all of it
        // then dates from before `step`.
        let shares = theirs.learnt <= step && theirs.known.len() <= SHARED;
        let more: Vec<_> = match shares {
            true => theirs
                .known
                .iter()
                .map(|(other, step)| (*other, *step))
                .collect(),
            false => Vec::new(),
        };
        let own = &mut self.threads[thread as usize];
        own.learnt = own.steps;
        for (other, step) in more.into_iter().chain([(other, step)]) {
            let known = own.known.entry(other).or_default();
            *known = step.max(*known);
        }
    }
}
