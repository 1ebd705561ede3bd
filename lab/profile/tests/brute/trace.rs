//! Writes traces operation by operation.

use heapdrome_profile::{Profile, profile};
use heapdrome_trace::{
    Beginning, Finish, Operation, Process, Reader, Record, Recording, Resident, Step, Time, Writer,
};

pub const MALLOC: u8 = 0;
pub const REALLOC: u8 = 1;
pub const FREE: u8 = 2;

/// A trace that is being written.
pub struct Trace(Writer<Vec<u8>>);

impl Trace {
    pub fn new() -> Self {
        Self::of(Self::recording())
    }

    pub fn recording() -> Recording {
        let names = ["malloc", "realloc", "free"];
        Recording {
            functions: names.map(str::to_owned).into(),
            command: vec!["./app".to_owned()],
            page_bytes: 4096,
            ..Recording::default()
        }
    }

    pub fn of(recording: Recording) -> Self {
        Self(Writer::new(Vec::new(), &recording).expect("begun"))
    }

    pub fn record(&mut self, record: Record) {
        self.0.record(record).expect("recorded");
    }

    pub fn begin(&mut self, process: u32, time: u64, beginning: Beginning) {
        self.record(Record::Process(Process {
            process,
            pid: 100 + process,
            program: format!("/bin/app{process}"),
            allocator: "libc.so.6".to_owned(),
            time: Time(time),
            beginning,
        }));
    }

    pub fn end(&mut self, process: u32, time: u64) {
        self.record(Record::Finish(Finish {
            process,
            time: Time(time),
            peak_resident: None,
            minor_faults: None,
            processor_time: None,
            waited: 0,
            gave_up: false,
            timed: None,
        }));
    }

    pub fn resident(&mut self, process: u32, time: u64, bytes: u64) {
        self.record(Record::Resident(Resident {
            process,
            time: Time(time),
            bytes,
        }));
    }

    pub fn step(&mut self, process: u32, step: Step) {
        self.0.operation(process, step).expect("written");
    }

    /// Adds an operation of a thread in process 0.
    pub fn does(&mut self, thread: u32, time: u64, operation: Operation) {
        let time = Time(time);
        self.step(
            0,
            Step {
                thread,
                time,
                operation,
                stack: None,
            },
        );
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0.finish().expect("finished")
    }

    pub fn profile(self) -> Profile {
        read(&self.bytes())
    }
}

pub fn read(bytes: &[u8]) -> Profile {
    profile(Reader::new(bytes).expect("a trace")).expect("a whole trace")
}

pub fn make(size: u64) -> Operation {
    Operation::Make {
        function: MALLOC,
        size,
        alignment: 0,
    }
}

pub fn free(block: u64) -> Operation {
    Operation::Free {
        function: FREE,
        block,
    }
}

pub fn resize(block: u64, size: u64) -> Operation {
    Operation::Resize {
        function: REALLOC,
        size,
        block,
    }
}
