//! Traces with known contents.

use heapdrome_profile::{Profile, profile};
use heapdrome_trace::{
    Beginning, Bypass, Finish, Frame, Module, Operation, Process, Reader, Record, Recording,
    Resident, Stack, Step, Time, Writer,
};

/// Text that could take control of a page or a terminal if it were not escaped.
pub const HOSTILE: &str = "\u{1b}[31m</script><script>alert(1)</script>\"'&--><!--";

pub const MS: u64 = 1_000_000;

/// A trace that is being written.
pub struct Trace(Writer<Vec<u8>>);

impl Trace {
    pub fn new() -> Self {
        Self::of("./app")
    }

    pub fn of(command: &str) -> Self {
        Self::sampled(command, 0)
    }

    /// Begins a trace that records one block for every `sample_bytes` bytes requested, or all
    /// blocks if this is 0.
    pub fn sampled(command: &str, sample_bytes: u64) -> Self {
        Self::with_stacks(command, sample_bytes, 0)
    }

    /// Begins a trace. `sample_bytes` and `stack_bytes` are the mean numbers of requested bytes
    /// between two recorded blocks, and between two blocks with stacks.
    pub fn with_stacks(command: &str, sample_bytes: u64, stack_bytes: u64) -> Self {
        let names = ["malloc", "_Znwm", "realloc", "free", "_ZdlPvm"];
        let recording = Recording {
            functions: names.map(str::to_owned).into(),
            command: vec![command.to_owned()],
            began: 1_700_000_000_000_000_000,
            heapdrome: "0.1.0".to_owned(),
            page_bytes: 4096,
            sample_bytes,
            stack_bytes,
            ..Recording::default()
        };
        Self(Writer::new(Vec::new(), &recording).expect("begun"))
    }

    pub fn record(&mut self, record: Record) {
        self.0.record(record).expect("recorded");
    }

    pub fn begin(&mut self, process: u32, time: u64, program: &str) {
        self.record(Record::Process(Process {
            process,
            pid: 100 + process,
            program: program.to_owned(),
            allocator: "/lib/libc.so.6".to_owned(),
            time: Time(time),
            beginning: Beginning::Executed,
        }));
    }

    pub fn end(&mut self, process: u32, time: u64, gave_up: bool) {
        self.record(Record::Finish(Finish {
            process,
            time: Time(time),
            peak_resident: None,
            minor_faults: None,
            processor_time: None,
            waited: 0,
            gave_up,
            timed: None,
        }));
    }

    pub fn bypass(&mut self, program: &str, reason: &str) {
        self.record(Record::Bypass(Bypass {
            pid: 77,
            program: program.to_owned(),
            reason: reason.to_owned(),
        }));
    }

    pub fn resident(&mut self, process: u32, time: u64, bytes: u64) {
        let time = Time(time);
        self.record(Record::Resident(Resident {
            process,
            time,
            bytes,
        }));
    }

    pub fn does(&mut self, process: u32, thread: u32, time: u64, operation: Operation) {
        let time = Time(time);
        let step = Step {
            thread,
            time,
            operation,
            stack: None,
        };
        self.0.operation(process, step).expect("written");
    }

    /// Adds a file of code and one stack for each address. The last address is the caller in every
    /// stack.
    pub fn code(&mut self, path: &str, addresses: &[u64]) {
        self.record(Record::Module(Module {
            module: 0,
            path: path.to_owned(),
            build_id: "00ff".to_owned(),
        }));
        let frame = |address: &u64| Frame {
            module: Some(0),
            address: *address,
        };
        for (stack, address) in (0..).zip(addresses) {
            let frames = [address, &addresses[addresses.len() - 1]]
                .map(frame)
                .to_vec();
            self.record(Record::Stack(Stack { stack, frames }));
        }
    }

    /// Adds a call with a stack.
    pub fn calls(&mut self, time: u64, stack: u32, operation: Operation) {
        let step = Step {
            thread: 0,
            time: Time(time),
            operation,
            stack: Some(stack),
        };
        self.0.operation(0, step).expect("written");
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0.finish().expect("finished")
    }

    pub fn profile(self) -> Profile {
        let bytes = self.bytes();
        profile(Reader::new(&bytes[..]).expect("a trace")).expect("a whole trace")
    }
}

pub fn make(function: u8, size: u64) -> Operation {
    Operation::Make {
        function,
        size,
        alignment: 0,
    }
}

pub fn free(block: u64) -> Operation {
    Operation::Free { function: 3, block }
}

/// Returns a trace of one process that makes 100 blocks of 100 bytes and one of 1 MiB. A second
/// thread frees all blocks except the first ten.
pub fn exchange() -> Trace {
    let mut trace = Trace::new();
    trace.begin(0, 0, "/usr/bin/app");
    trace.resident(0, MS, 4 << 20);
    for block in 0..100 {
        trace.does(0, 0, (1 + block) * MS, make(0, 100));
    }
    trace.does(0, 0, 200 * MS, make(1, 1 << 20));
    trace.resident(0, 200 * MS, 6 << 20);
    for block in 10..101 {
        trace.does(0, 1, (300 + block) * MS, free(block));
    }
    trace.end(0, 1000 * MS, false);
    trace
}

/// Returns a trace of three processes that run one after the other. The recording of the second
/// stopped before its end, and a further program was not recorded.
pub fn several(name: &str) -> Trace {
    let mut trace = Trace::of(name);
    for process in 0..3_u32 {
        let begin = u64::from(process) * 100 * MS;
        trace.begin(process, begin, &format!("/bin/{name}{process}"));
        trace.does(process, 0, begin + MS, make(0, 1000 << process));
        trace.does(process, 0, begin + 2 * MS, make(2, 24));
        trace.does(process, 0, begin + 3 * MS, free(0));
        trace.resident(process, begin + 50 * MS, 1 << 20);
        trace.end(process, begin + 90 * MS, process == 1);
    }
    trace.bypass(&format!("/bin/{name}-static"), "it is linked statically");
    trace
}

/// Returns a trace of one process with three stacks over two seconds. The first makes ten large
/// blocks, the second makes blocks that the next call frees, and the third never frees the block
/// that it makes each millisecond.
pub fn leaking(command: &str, path: &str, sample_bytes: u64) -> Trace {
    let mut trace = Trace::with_stacks(command, sample_bytes, 1);
    trace.code(path, &[0x1234, 0x2345, 0x3456, 0x99]);
    trace.begin(0, 0, "/bin/app");
    for block in 0..10 {
        trace.calls(block * 160, 0, make(0, 100_000));
    }
    for turn in 0..2000 {
        trace.calls(turn * MS + MS, 1, make(0, 64));
        trace.does(0, 0, turn * MS + MS + 160, free(10 + 2 * turn));
        trace.calls(turn * MS + MS + 320, 2, make(1, 48));
    }
    trace.end(0, 2001 * MS, false);
    trace
}

/// Returns profiles of minimal traces: without calls, without elapsed time, with only empty blocks,
/// or with only a failed call.
pub fn odd() -> Vec<Profile> {
    let mut at_once = Trace::new();
    at_once.does(0, 0, 0, make(0, 10));
    let mut empty_blocks = Trace::new();
    empty_blocks.does(0, 0, 16, make(0, 0));
    empty_blocks.does(0, 0, 32, free(0));
    let mut failing = Trace::new();
    let (function, size, alignment) = (0, u64::MAX, 0);
    failing.does(
        0,
        0,
        16,
        Operation::Fail {
            function,
            size,
            alignment,
        },
    );
    let mut begun = Trace::new();
    begun.begin(0, 5, "");
    let all = [Trace::new(), at_once, empty_blocks, failing, begun];
    all.into_iter().map(Trace::profile).collect()
}
