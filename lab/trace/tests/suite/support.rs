//! Generates traces for the tests, and reads chunks without the crate's own reader.

use heapdrome_trace::{
    Beginning, Finish, Frame, Module, Operation, Process, Record, Recording, Stack, Step, Time,
    Writer,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Returns the description of the recording with which the traces of these tests begin.
pub fn recording() -> Recording {
    Recording {
        functions: ["malloc", "realloc", "free", "_ZdlPv"]
            .map(String::from)
            .to_vec(),
        command: vec!["a program".into()],
        ..Recording::default()
    }
}

/// Returns the beginning of a process.
pub fn process(number: u32) -> Record {
    Record::Process(Process {
        process: number,
        pid: 100 + number,
        program: "/bin/program".into(),
        allocator: "libc.so.6".into(),
        time: Time(0),
        beginning: Beginning::Executed,
    })
}

/// Returns the end of a process.
pub fn finish(process: u32) -> Record {
    Record::Finish(Finish {
        process,
        time: Time(1 << 40),
        peak_resident: Some(1),
        minor_faults: None,
        processor_time: None,
        waited: 0,
        gave_up: false,
        timed: None,
    })
}

/// Number of stacks of generated traces.
pub const STACKS: u32 = 5;

/// Returns a module.
pub fn module(number: u32, path: &str) -> Record {
    Record::Module(Module {
        module: number,
        path: path.into(),
        build_id: "00ff".into(),
    })
}

/// Returns a stack of these frames.
pub fn stack(number: u32, frames: &[(Option<u32>, u64)]) -> Record {
    Record::Stack(Stack {
        stack: number,
        frames: frames.iter().copied().map(Frame::from).collect(),
    })
}

/// Returns the modules and stacks of generated traces.
pub fn stacks() -> Vec<Record> {
    let mut records = vec![module(0, "/bin/program"), module(1, "/lib/libc.so.6")];
    for number in 0..STACKS {
        let frame = |depth| {
            (
                (depth > 0).then_some(depth % 2),
                u64::MAX - u64::from(depth),
            )
        };
        let frames: Vec<_> = (0..number * 30).map(frame).collect();
        records.push(stack(number, &frames));
    }
    records
}

/// Generator of random operations of one process. It frees and resizes only live blocks, except for
/// foreign ones.
pub struct Program {
    random: ChaCha8Rng,
    live: Vec<u64>,
    made: u64,
    time: u64,
}

impl Program {
    /// Creates the program of a seed.
    pub fn new(seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            random,
            live: Vec::new(),
            made: 0,
            time: 0,
        }
    }

    fn size(&mut self) -> u64 {
        match self.random.random_range(0..10) {
            0 => self.random.random(),
            1..4 => self.random.random_range(0..100_000),
            _ => self.random.random_range(1..20) * 16,
        }
    }

    fn operation(&mut self) -> Operation {
        let size = self.size();
        let function = self.random.random_range(0..4);
        let alignment = [0, 0, 0, 64, 4096][self.random.random_range(0..5)];
        let kind = self.random.random_range(0..100);
        let block = (!self.live.is_empty()).then(|| self.random.random_range(0..self.live.len()));
        match (kind, block) {
            (0, _) => Operation::FreeNull { function },
            (1, _) => Operation::FreeForeign {
                function,
                size: Some(size / 2),
            },
            (2, _) => Operation::FreeForeign {
                function,
                size: None,
            },
            (3, _) => Operation::Fail {
                function,
                size,
                alignment,
            },
            (4..50, Some(block)) => Operation::Free {
                function,
                block: self.live.swap_remove(block),
            },
            (50..55, Some(block)) => {
                let block = self.live.swap_remove(block);
                Operation::Resize {
                    function,
                    size,
                    block,
                }
            }
            _ => Operation::Make {
                function,
                size,
                alignment,
            },
        }
    }

    /// Returns the next step.
    pub fn step(&mut self) -> Step {
        let operation = self.operation();
        if operation.makes_block() {
            self.live.push(self.made);
            self.made += 1;
        }
        let pause = [0, 1, 3, 200, 1_000_000][self.random.random_range(0..5)];
        self.time += pause * Time::STEP;
        let thread = self.random.random_range(0..4);
        let stack = self.random.random_range(0..2 * STACKS);
        let has_stack = operation.may_have_stack() && stack < STACKS;
        Step {
            thread,
            time: Time(self.time),
            operation,
            stack: has_stack.then_some(stack),
        }
    }
}

/// Returns a random trace of several processes, and the steps of each process.
pub fn generate(seed: u64, processes: u32, steps: usize) -> (Vec<u8>, Vec<Vec<Step>>) {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let mut programs: Vec<_> = (0..processes)
        .map(|it| Program::new(seed + u64::from(it)))
        .collect();
    let mut written = vec![Vec::new(); processes as usize];
    for record in stacks().into_iter().chain((0..processes).map(process)) {
        writer.record(record).expect("in order");
    }
    for turn in 0..steps {
        let number = turn / 7 % programs.len();
        let step = programs[number].step();
        writer
            .operation(number as u32, step)
            .expect("an operation in order");
        written[number].push(step);
    }
    for number in 0..processes {
        writer.record(finish(number)).expect("memory");
    }
    (writer.finish().expect("memory"), written)
}

/// A chunk of a trace, read without the crate's own reader.
pub struct RawChunk {
    /// The header's first byte.
    pub kind: u8,
    /// Number of operations in the header.
    pub operations: u32,
    /// Content in the file: a frame of zstd.
    pub frame: Vec<u8>,
    /// Content, decompressed.
    pub content: Vec<u8>,
}

/// Returns the chunks of a complete trace, decoded as `docs/trace-format.md` describes.
pub fn chunks(trace: &[u8]) -> impl Iterator<Item = RawChunk> {
    let mut rest = &trace[16..];
    std::iter::from_fn(move || {
        let header: &[u8; 24] = rest.first_chunk()?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let (compressed, after) = rest[24..].split_at(word(4) as usize);
        rest = after;
        let content = zstd::bulk::decompress(compressed, word(8) as usize);
        Some(RawChunk {
            kind: header[0],
            operations: word(12),
            frame: compressed.to_vec(),
            content: content.expect("a frame of zstd"),
        })
    })
}
