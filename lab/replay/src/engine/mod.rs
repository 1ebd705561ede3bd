//! Runs a program with real threads. Nothing is allocated meanwhile, except by the C library for
//! the threads themselves.

mod clock;
mod gate;
mod heap;
mod lane;
mod mapping;
mod run;
mod stop;
mod thread;
mod touch;

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use heapdrome_system::process::{Elapsed, Memory, Moment, Whose, page_faults};

use crate::options::Touch;
use crate::program::{HEADER_BYTES, Header, WORD};
use crate::words::FIRST_SLOT;
use clock::Clock;
use lane::Lane;
use mapping::Mapping;

pub use heap::{Heap, Libc};

/// Why a replay does not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file is no program.
    #[error("not a compiled trace of this heapdrome; heapdrome replay makes one of a trace")]
    NotAProgram,
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// The system has no memory for the engine's own tables.
    #[error("the system has no {bytes} bytes for the replay's own tables")]
    Tables {
        /// Bytes that they need.
        bytes: u64,
    },
}

/// The measurements of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The header of the program.
    pub header: Header,
    /// Time from the first operation to the last.
    pub elapsed: Elapsed,
    /// Memory before the first operation.
    pub before: Memory,
    /// Memory after the last operation.
    pub after: Memory,
    /// Most bytes of the engine's own that were resident at one time.
    pub own: u64,
    /// Bytes of the engine's own that were resident all the time, as anonymous memory.
    pub tables: u64,
    /// Page faults without input between the first operation and the last, except the engine's own.
    pub faults: u64,
    /// Nanoseconds by which the latest operation of a paced replay came late.
    pub late: u64,
}

/// The state that all threads of a replay share.
struct Replay<'a, H> {
    heap: &'a H,
    touch: Touch,
    /// The blocks' addresses, by slot.
    slots: *mut *mut u8,
    lanes: *mut Lane,
    program: Mapping,
    clock: Clock,
    held: Held,
    /// The function of a thread.
    entry: extern "C" fn(*mut c_void) -> *mut c_void,
}

/// Bytes of the program that are in memory, and the page faults that brought them there.
#[derive(Default)]
struct Held {
    now: AtomicU64,
    most: AtomicU64,
    faults: AtomicU64,
}

impl Held {
    fn grow(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    /// Brings a part of the program into memory, and counts its page faults.
    fn load(&self, program: &Mapping, offset: u64, bytes: u64) {
        self.grow(bytes);
        let before = page_faults(Whose::Thread);
        program.load(offset, bytes);
        let own = page_faults(Whose::Thread).saturating_sub(before);
        // Read after all threads have been joined, which orders it.
        self.faults.fetch_add(own, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Reads the header of a program.
///
/// # Errors
/// If the file cannot be read, or is no program of this heapdrome.
pub fn header(file: &File) -> Result<Header, ReplayError> {
    let bytes = file.metadata()?.len();
    let mut header = [0; HEADER_BYTES];
    if bytes < HEADER_BYTES as u64 {
        return Err(ReplayError::NotAProgram);
    }
    file.read_exact_at(&mut header, 0)?;
    let header = Header::from_bytes(&header).filter(|header| header.bytes == bytes);
    header.ok_or(ReplayError::NotAProgram)
}

/// Runs a program on a heap. Ends the process with one line where the heap returns null.
///
/// # Errors
/// If the file is no program, or the system has no memory for the tables.
///
/// # Safety
/// [`compile`](crate::compile) wrote the file, and nothing has changed it since.
pub unsafe fn replay<H: Heap>(file: &File, touch: Touch, heap: &H) -> Result<Outcome, ReplayError> {
    let header = header(file)?;
    let program = Mapping::file(file, header.bytes as usize)?;
    let slots_bytes = u64::from(header.slots) * WORD;
    let lanes_at = slots_bytes.next_multiple_of(align_of::<Lane>() as u64);
    let bytes = lanes_at + u64::from(header.threads) * size_of::<Lane>() as u64;
    let tables = Mapping::zeros(bytes as usize);
    let tables = tables.map_err(|_| ReplayError::Tables { bytes })?;
    // SAFETY: the tables have room for the slots and, from there on, for the lanes.
    let lanes = unsafe { tables.place().add(lanes_at as usize) }.cast::<Lane>();
    let mut replay = Replay {
        heap,
        touch,
        slots: tables.place().cast(),
        lanes,
        program,
        clock: Clock::default(),
        held: Held::default(),
        entry: thread::entry::<H>,
    };
    // SAFETY: `compile` wrote the table of the threads' beginnings, at a multiple of a word, and
    // there is a lane for each.
    unsafe { lane::fill(&replay, header.table, header.threads) };
    let before = Memory::read();
    replay.clock = Clock::started();
    let faults_before = page_faults(Whose::Process);
    let began = Moment::now();
    // SAFETY: `compile` wrote the program, and this is its first thread.
    unsafe { thread::follow(&replay, 0) };
    let elapsed = began.elapsed();
    let faults = page_faults(Whose::Process).saturating_sub(faults_before);
    let after = Memory::read();
    // Without touching, a call that returned null shows where its block is freed, or else here.
    // SAFETY: the table has this many slots, and all threads have ended.
    let slots = unsafe { std::slice::from_raw_parts(replay.slots, header.slots as usize) };
    if slots
        .iter()
        .skip(FIRST_SLOT as usize)
        .any(|block| block.is_null())
    {
        stop::was_out_of_memory();
    }
    Ok(Outcome {
        header,
        elapsed,
        before,
        after,
        tables: tables.bytes(),
        faults: faults.saturating_sub(replay.held.faults.load(Ordering::Relaxed)),
        own: tables.bytes() + replay.held.most.load(Ordering::Relaxed),
        late: replay.clock.late(),
    })
}
