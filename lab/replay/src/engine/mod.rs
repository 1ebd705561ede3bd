//! Runs a program with real threads. During the run, only the program's calls allocate, except that
//! the C library allocates memory for the threads themselves.

mod check;
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

/// Reason why a replay does not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file is no compiled program.
    #[error("not a compiled trace of this heapdrome; heapdrome replay makes one of a trace")]
    NotAProgram,
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// The system has no memory for the engine's own tables.
    #[error("the system has no {bytes} bytes for the replay's own tables")]
    Tables {
        /// Bytes that the tables need.
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
    /// Maximum resident memory of the engine itself, in bytes.
    pub own: u64,
    /// Size of the engine's tables in bytes. They are resident throughout.
    pub tables: u64,
    /// Number of minor page faults between the first operation and the last, excluding those of the
    /// engine itself.
    pub faults: u64,
    /// Maximum number of bytes of the compiled program that were loaded at one time; included in
    /// `own`.
    pub held: u64,
    /// Maximum delay of an operation in a paced replay, in nanoseconds.
    pub late: u64,
}

impl Outcome {
    /// Returns the number of bytes by which resident memory grew from its value before the first
    /// operation to its peak, excluding the compiled program.
    #[must_use]
    pub fn growth(&self) -> u64 {
        let began = self.before.resident + self.held;
        self.after.peak_resident.saturating_sub(began)
    }
}

/// The state that all threads of a replay share.
struct Replay<'a, H> {
    heap: &'a H,
    touch: Touch,
    /// Addresses of the blocks, indexed by slot.
    slots: *mut *mut u8,
    /// Sizes of the blocks, indexed by slot; null if contents are not compared.
    sizes: *mut usize,
    lanes: *mut Lane,
    program: Mapping,
    clock: Clock,
    held: Held,
    /// Function that each thread runs.
    entry: extern "C" fn(*mut c_void) -> *mut c_void,
}

/// Size of the loaded parts of the program, and the number of page faults of loading them.
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

    /// Loads a part of the program into memory, and counts the page faults of loading.
    fn load(&self, program: &Mapping, offset: u64, bytes: u64) {
        self.grow(bytes);
        let before = page_faults(Whose::Thread);
        program.load(offset, bytes);
        let own = page_faults(Whose::Thread).saturating_sub(before);
        // Relaxed: read only after all threads have been joined.
        self.faults.fetch_add(own, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Reads the header of a program.
///
/// # Errors
/// Returns an error if the file cannot be read, or is no program of this heapdrome.
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

/// Runs a program on a heap. Ends the process with one line if the heap returns null, if a thread
/// cannot be started, or if a check of [`Touch::Check`] fails.
///
/// # Errors
/// Returns an error if the file cannot be read or is no program, or if the system has no memory for
/// the tables.
///
/// # Safety
/// [`compile`](crate::compile) wrote the file, and nothing changes it before this function returns.
pub unsafe fn replay<H: Heap>(file: &File, touch: Touch, heap: &H) -> Result<Outcome, ReplayError> {
    let header = header(file)?;
    let program = Mapping::file(file, header.bytes as usize)?;
    let tables = Tables::new(&header, touch)?;
    let replay = Replay {
        heap,
        touch,
        slots: tables.slots,
        sizes: tables.sizes,
        lanes: tables.lanes,
        program,
        // Started before the lanes are filled, which point to the replay: from then on it must not
        // be written except through its atomics.
        clock: Clock::started(),
        held: Held::default(),
        entry: thread::entry::<H>,
    };
    // SAFETY: `compile` wrote the table of the threads' first operations at this offset in words.
    // There is a lane for each thread, and no thread uses it yet.
    unsafe { lane::fill(&replay, header.table, header.threads) };
    let before = Memory::read();
    let faults_before = page_faults(Whose::Process);
    let began = Moment::now();
    // SAFETY: `compile` wrote the program, as this function requires. Each program has a first
    // thread, and only this call runs it.
    unsafe { thread::follow(&replay, 0) };
    let elapsed = began.elapsed();
    let faults = page_faults(Whose::Process).saturating_sub(faults_before);
    let after = Memory::read();
    // SAFETY: the tables have this many slots. All threads have ended, because a program's first
    // thread joins all others.
    unsafe { look_at_all(&replay, header.slots) };
    let held = replay.held.most.load(Ordering::Relaxed);
    Ok(Outcome {
        header,
        elapsed,
        before,
        after,
        tables: tables.memory.bytes(),
        faults: faults.saturating_sub(replay.held.faults.load(Ordering::Relaxed)),
        own: tables.memory.bytes() + held,
        held,
        late: replay.clock.late(),
    })
}

/// The tables that all threads of a replay share.
struct Tables {
    memory: Mapping,
    slots: *mut *mut u8,
    sizes: *mut usize,
    lanes: *mut Lane,
}

impl Tables {
    fn new(header: &Header, touch: Touch) -> Result<Self, ReplayError> {
        let slots = u64::from(header.slots) * WORD;
        let sizes = match touch {
            Touch::Check => slots,
            _ => 0,
        };
        let lanes_at = (slots + sizes).next_multiple_of(align_of::<Lane>() as u64);
        let bytes = lanes_at + u64::from(header.threads) * size_of::<Lane>() as u64;
        let memory = Mapping::zeros(bytes as usize);
        let memory = memory.map_err(|_| ReplayError::Tables { bytes })?;
        let place = memory.place();
        // SAFETY: the mapping has room for the slots, then for the sizes if there are any, and for
        // the lanes from `lanes_at` on.
        let (behind, lanes) = unsafe { (place.add(slots as usize), place.add(lanes_at as usize)) };
        Ok(Self {
            memory,
            slots: place.cast(),
            sizes: match touch {
                Touch::Check => behind.cast(),
                _ => std::ptr::null_mut(),
            },
            lanes: lanes.cast(),
        })
    }
}

/// Checks all slots after the replay. If blocks are not touched, a null pointer returned for a
/// block that is never freed is detected only here. A replay that checks contents also compares the
/// blocks that are still live.
///
/// # Safety
/// The tables of the replay have this many slots, and all its threads have ended.
unsafe fn look_at_all<H>(replay: &Replay<'_, H>, slots: u32) {
    for slot in FIRST_SLOT..slots {
        // SAFETY: both tables have the slot, by this function's contract, and no other thread runs.
        // The table of sizes has the size of each live block, which `check::fill` has filled, and 0
        // for a block that was freed.
        unsafe {
            let block = replay.slots.add(slot as usize).read();
            if block.is_null() {
                stop::was_out_of_memory();
            }
            if replay.touch == Touch::Check {
                let size = replay.sizes.add(slot as usize).read();
                check::compare(block, slot, size, size);
            }
        }
    }
}
