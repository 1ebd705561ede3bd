//! Builds traces of programs whose threads make, resize and free blocks.

use std::collections::BTreeMap;
use std::fs::File;

use heapdrome_trace::{Operation, Recording, Step, Time, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The functions that the programs call.
const FUNCTIONS: [&str; 8] = [
    "malloc",
    "free",
    "realloc",
    "calloc",
    "posix_memalign",
    "aligned_alloc",
    "_ZnwmSt11align_val_t",
    "_ZdlPvm",
];

/// Returns the description of a recording, with the functions that the programs call.
pub fn recording() -> Recording {
    Recording {
        functions: FUNCTIONS.map(String::from).to_vec(),
        ..Recording::default()
    }
}

/// A program whose trace is written step by step.
pub struct Program {
    random: ChaCha8Rng,
    writer: Writer<File>,
    /// Each live block with its size.
    live: BTreeMap<u64, usize>,
    made: u64,
    time: u64,
    /// Longest pause between two steps, in nanoseconds.
    pub pause: u64,
}

impl Program {
    pub fn new(seed: u64) -> Self {
        let file = tempfile::tempfile().expect("a file");
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            writer: Writer::new(file, &recording()).expect("a trace"),
            live: BTreeMap::new(),
            made: 0,
            time: 1_000_000,
            pause: 200,
        }
    }

    /// Returns the trace, and the sorted sizes of the blocks that are live at the trace's end.
    pub fn finish(self) -> (File, Vec<usize>) {
        let mut sizes: Vec<_> = self.live.into_values().collect();
        sizes.sort_unstable();
        (self.writer.finish().expect("a trace"), sizes)
    }

    pub fn number(&mut self, below: u64) -> u64 {
        self.random.random_range(0..below)
    }

    pub fn step(&mut self, thread: u32, operation: Operation) {
        self.time += self.random.random_range(0..=self.pause);
        let time = Time(self.time);
        let step = Step {
            thread,
            time,
            operation,
            stack: None,
        };
        self.writer.operation(0, step).expect("a step");
    }

    /// Adds a call that makes a block of a unique size. Returns the block's number.
    pub fn make(&mut self, thread: u32) -> u64 {
        let function = [0, 0, 0, 3, 4, 5, 6][self.number(7) as usize];
        let alignment = match function {
            0 | 3 => 0,
            5 => 16,
            _ => 1 << self.number(13),
        };
        let size = 16 * (self.made + 1);
        self.step(
            thread,
            Operation::Make {
                function,
                size,
                alignment,
            },
        );
        self.lives(size)
    }

    pub fn free(&mut self, thread: u32, block: u64) {
        assert!(self.live.remove(&block).is_some());
        let function = [1, 7][self.number(2) as usize];
        self.step(thread, Operation::Free { function, block });
    }

    pub fn resize(&mut self, thread: u32, block: u64) -> u64 {
        assert!(self.live.remove(&block).is_some());
        let size = 16 * (self.made + 1);
        self.step(
            thread,
            Operation::Resize {
                function: 2,
                size,
                block,
            },
        );
        self.lives(size)
    }

    /// Returns a random live block; `None` if there is none.
    pub fn any(&mut self) -> Option<u64> {
        let place = self.number(self.live.len().max(1) as u64) as usize;
        self.live.keys().nth(place).copied()
    }

    /// Records that the last step made a block of this size. Returns the block's number.
    pub fn lives(&mut self, size: u64) -> u64 {
        self.live.insert(self.made, size as usize);
        self.made += 1;
        self.made - 1
    }

    /// Adds `steps` steps of random kinds by random threads whose numbers are in `threads`.
    pub fn wander(&mut self, threads: std::ops::Range<u32>, steps: u64) {
        for _ in 0..steps {
            let thread = self.random.random_range(threads.clone());
            let block = self.any();
            match (self.number(20), block) {
                (0, _) => self.step(thread, Operation::FreeNull { function: 1 }),
                (1, _) => {
                    let size = Some(7);
                    self.step(thread, Operation::FreeForeign { function: 1, size });
                }
                (2, _) => {
                    let (size, alignment) = (1 << 60, 0);
                    let failed = Operation::Fail {
                        function: 0,
                        size,
                        alignment,
                    };
                    self.step(thread, failed);
                }
                (3..6, Some(block)) => _ = self.resize(thread, block),
                (6..13, Some(block)) => self.free(thread, block),
                _ => _ = self.make(thread),
            }
        }
    }
}
