//! Rings: how recorded calls reach the collector. Shared memory of the recorded processes and of
//! the collector, which both compile this file.
//!
//! Every thread writes into a ring of its own, and the collector alone reads it. An entry is
//! reserved by one instruction, so that a signal handler which allocates takes the next one. It is
//! valid once its last word carries the number of the current lap. An entry that a killed thread
//! left incomplete is therefore never read, and no separate index has to be published.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The name of the file that holds a [`Control`]. It makes the library record.
pub const CONTROL: &str = "recording";

/// Begins the names of files that hold a [`Ring`].
pub const PREFIX: &str = "ring-";

/// The first word of a ring that is ready to be read.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hdring03");

/// Number of entries of a ring: at 10 million calls a second they last 3 ms.
pub const ENTRIES: u64 = 1 << 15;

/// Bytes for the path of the object that serves malloc, its terminating zero included.
pub const PATH_BYTES: usize = 1024;

/// Codes of entries. A function's number is added to the first three. From [`WHOLE`](code::WHOLE)
/// on, an entry's detail is one number of 64 bits.
pub mod code {
    /// The function returned the block at the entry's address, of the entry's size.
    pub const MADE: u8 = 0;
    /// The function was called to free the block at the entry's address.
    pub const FREED: u8 = 64;
    /// The function returned no block.
    pub const FAILED: u8 = 128;
    /// The entry's address is the alignment that the next entry's call asked for.
    pub const ALIGNMENT: u8 = 192;
    /// The call that returned the block at the entry's address has a stack. The entry's size is the
    /// position of that stack in the ring of stacks. The address is 0 if the call failed.
    pub const STACK: u8 = 193;
    /// The first of the codes whose entries have a detail of 64 bits.
    pub const WHOLE: u8 = 240;
    /// The following entries are of the thread whose number is the entry's address; the detail is
    /// the processor's counter.
    pub const THREAD: u8 = WHOLE;
    /// The detail is the processor's counter, of which the next entry has the lowest bits only.
    pub const TIME: u8 = WHOLE + 1;
    /// The detail is the size of the next entry.
    pub const SIZE: u8 = WHOLE + 2;
    /// The process is about to fork; the detail is the processor's counter, by which the child
    /// refers to this entry ([`Ring::forked`](super::Ring::forked)).
    pub const FORK: u8 = WHOLE + 3;
}

/// Memory that the collector and all recorded processes share.
#[repr(C)]
pub struct Control {
    /// The processor's counter when the collector last read the rings.
    pub beat: AtomicU64,
    /// The collector's process.
    pub collector: AtomicU32,
    /// Not 0: the recording is over, and the collector no longer reads the rings.
    pub closed: AtomicU32,
    /// Number of rings that were made.
    pub rings: AtomicU32,
    /// Number of processes that could not get a ring.
    pub without_ring: AtomicU32,
    /// Number of processes that were forked where calls to the system may be forbidden, so that
    /// they could not make a ring.
    pub forked_in_sandbox: AtomicU32,
    /// The collector's namespace of process numbers; 0 if unknown.
    pub namespace: AtomicU64,
    /// Mean number of requested bytes between two sample points; 0 if every call is recorded. Set
    /// before the command starts.
    pub sample_bytes: AtomicU64,
    /// Mean number of requested bytes between two points at which a stack is recorded; 1 if every
    /// recorded call has one, 0 if none has.
    pub stack_bytes: AtomicU64,
    /// Number of stacks that could not be recorded, since shared memory ran out.
    pub stacks_left_out: AtomicU64,
    /// Number of sampled blocks that could not be recorded, since there was no memory to mark them.
    pub left_out: AtomicU64,
}

/// One recorded operation.
#[repr(C, align(16))]
pub struct Entry {
    /// The lowest bits of the processor's counter ([`STAMP_BITS`]) and the size above them, or what
    /// the code says.
    pub detail: AtomicU64,
    /// Address (48 bits), code (8 bits), lap (8 bits). Written last.
    pub tag: AtomicU64,
}

/// Bits of an address, and the place of the code in a tag.
pub const ADDRESS_BITS: u32 = 48;
/// The place of the lap in a tag.
pub const LAP_SHIFT: u32 = 56;

/// Bits of the processor's counter in an entry: 7 minutes at 2.6 GHz.
pub const STAMP_BITS: u32 = 40;
/// Sizes from here on do not fit into an entry: [`code::SIZE`] precedes it.
pub const LONG: u64 = (1 << (u64::BITS - STAMP_BITS)) - 1;
/// Ticks after which a thread writes its time in full. A reader takes the time that is nearest to
/// the previous entry's, so the limit is less than half of the range of the bits.
pub const FAR: u64 = 1 << (STAMP_BITS - 3);

/// An operation before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The processor's counter.
    pub stamp: u64,
    /// Bytes, or the value that the code defines.
    pub size: u64,
    /// An address, or the value that the code defines.
    pub address: u64,
    /// The sum of a code and a function's number.
    pub code: u8,
}

/// Ring of one thread's recorded operations.
#[repr(C)]
pub struct Ring {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// ID of the process, in its own PID namespace.
    pub pid: u32,
    /// ID of the writing thread, in its own PID namespace.
    pub tid: AtomicU32,
    /// Identity of the process's current program among all programs of all processes: the
    /// processor's counter when the program began.
    pub image: u64,
    /// Identity of the program that this one was forked from; 0 for an executed program.
    pub parent: u64,
    /// The processor's counter when the process was forked.
    pub forked: u64,
    /// The process's namespace of process numbers: the number of its file; 0 if unknown.
    pub namespace: u64,
    /// Ticks of the processor's counter during which threads waited for the collector to make room.
    pub waited: AtomicU64,
    /// Not 0: the process has stopped recording.
    pub gave_up: AtomicU32,
    /// Not 0: the collector no longer reads the ring.
    pub abandoned: AtomicU32,
    /// Address of the process's next ring in the process.
    pub next: usize,
    /// Address of the thread's ring of stacks in the process; 0 until there is one, 1 if it cannot
    /// be made.
    pub stacks: AtomicUsize,
    /// Number of the ring, unique in the process.
    pub number: u32,
    /// The path of the executable, ended by a zero.
    pub program: [u8; PATH_BYTES],
    /// The path of the object that serves malloc, ended by a zero.
    pub server: [u8; PATH_BYTES],
    /// Times of some of the calls.
    pub timing: Timing,
    /// Index of the next entry to reserve.
    pub reserved: Line,
    /// Index of the next entry to read.
    pub taken: Line,
    /// The entries.
    pub entries: [Entry; ENTRIES as usize],
}

/// Sums over the calls of a ring's threads that were timed, in ticks of the processor's counter.
/// Signed numbers, as two's complement.
#[repr(C)]
pub struct Timing {
    /// Number of calls that were timed.
    pub calls: AtomicU64,
    /// Ticks in the allocator.
    pub ticks: AtomicU64,
    /// Squares of the ticks that each call took in the allocator.
    pub squares: AtomicU64,
    /// Ticks that the recording of these calls took.
    pub recording: AtomicU64,
    /// Number of calls that were interrupted, and are not in the sums.
    pub interrupted: AtomicU64,
}

/// A word in a cache line of its own: the thread writes one of them and the collector another.
#[repr(C, align(128))]
pub struct Line(pub AtomicU64);

/// Returns the number of the lap that contains the entry with this index, modulo the range of a
/// tag's lap.
pub const fn lap(index: u64) -> u64 {
    // The memory of a new ring is zero: the first lap is 1.
    ((index / ENTRIES) + 1) & 0xff
}

impl Ring {
    /// Reserves entries for the calling thread, the only one that writes here, and returns the
    /// index of the first.
    #[inline]
    pub fn reserve(&self, number: u64) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            let mut index = number;
            // SAFETY: the word is this ring's. Only one thread writes it, so one instruction
            // excludes its signal handlers. A locked instruction would cost three times as much.
            unsafe {
                core::arch::asm!(
                    "xadd qword ptr [{word}], {index}",
                    word = in(reg) self.reserved.0.as_ptr(),
                    index = inout(reg) index,
                    options(nostack)
                );
            }
            index
        }
        #[cfg(not(target_arch = "x86_64"))]
        // Relaxed: no other thread uses the word; the addition excludes signal handlers.
        self.reserved.0.fetch_add(number, Ordering::Relaxed)
    }

    /// Returns the first index whose entry is not free.
    #[inline]
    pub fn limit(&self) -> u64 {
        // Acquire pairs with the collector's release: the collector has read the entries that are
        // overwritten.
        self.taken.0.load(Ordering::Acquire) + ENTRIES
    }

    /// Writes an operation into an entry that was reserved, and is below the limit. For a size of
    /// [`LONG`] or more, the entry only marks that the size precedes it.
    #[inline]
    pub fn write(&self, index: u64, event: Event) {
        let stamp = event.stamp & ((1 << STAMP_BITS) - 1);
        let detail = event.size.min(LONG) << STAMP_BITS | stamp;
        self.write_whole(index, event.code, event.address, detail);
    }

    /// Writes an entry that was reserved, and is below the limit.
    #[inline]
    pub fn write_whole(&self, index: u64, code: u8, address: u64, detail: u64) {
        let entry = &self.entries[(index % ENTRIES) as usize];
        let address = address & ((1 << ADDRESS_BITS) - 1);
        let tag = address | u64::from(code) << ADDRESS_BITS | lap(index) << LAP_SHIFT;
        entry.detail.store(detail, Ordering::Relaxed);
        // Release pairs with the acquire of the collector, so the collector sees the entry's other
        // word.
        entry.tag.store(tag, Ordering::Release);
    }
}
