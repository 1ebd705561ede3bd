//! Rings: shared memory through which recorded calls reach the collector. The library and the
//! collector both compile this file.
//!
//! Every thread writes into its own ring, which only the collector reads. A thread reserves an
//! entry in one step, so a signal handler that allocates takes the next entry. An entry is valid
//! once its last word contains the number of the current lap. So an incomplete entry of a killed
//! thread is never read, and no index has to be published.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Name of the file that contains a [`Control`]. The file makes the library record.
pub const CONTROL: &str = "recording";

/// Prefix of the names of files that contain a [`Ring`].
pub const PREFIX: &str = "ring-";

/// First word of a valid ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hdring05");

/// Number of entries of a ring: at 10 million calls a second they last 3 ms.
pub const ENTRIES: u64 = 1 << 15;

/// Number of bytes for the path of the object that serves malloc, including its terminating zero.
pub const PATH_BYTES: usize = 1024;

/// Codes of entries. A function's number is added to each of the first three. From
/// [`WHOLE`](code::WHOLE) on, an entry's detail is one number of 64 bits.
pub mod code {
    /// The function returned the block at the entry's address, of the entry's size.
    pub const MADE: u8 = 0;
    /// The function was called to free the block at the entry's address.
    pub const FREED: u8 = 64;
    /// The function returned no block.
    pub const FAILED: u8 = 128;
    /// The entry's address is the alignment that the next entry's call requested.
    pub const ALIGNMENT: u8 = 192;
    /// The call that returned the block at the entry's address has a stack. The entry's size is the
    /// position of that stack in the ring of stacks. The address is 0 if the call failed.
    pub const STACK: u8 = 193;
    /// First of the codes whose entries have a detail of 64 bits.
    pub const WHOLE: u8 = 240;
    /// The entry's address is the ID of the thread that writes the following entries. Its detail is
    /// the processor's counter.
    pub const THREAD: u8 = WHOLE;
    /// The detail is the processor's counter, of which the next operation's entry has only the
    /// lowest bits.
    pub const TIME: u8 = WHOLE + 1;
    /// The detail is the size in the next operation's entry, which has too few bits for it.
    pub const SIZE: u8 = WHOLE + 2;
    /// The process is about to fork. The detail is the processor's counter, by which the child
    /// refers to this entry ([`Ring::forked`](super::Ring::forked)).
    pub const FORK: u8 = WHOLE + 3;
}

/// Memory that the collector and all recorded processes share.
#[repr(C)]
pub struct Control {
    /// The processor's counter when the collector last read the rings.
    pub beat: AtomicU64,
    /// ID of the collector's process.
    pub collector: AtomicU32,
    /// Not 0 if the recording is over, and the collector no longer reads the rings.
    pub closed: AtomicU32,
    /// Number of rings that processes have created.
    pub rings: AtomicU32,
    /// Number of processes that could not get a ring, except those that were forked in a sandbox.
    pub without_ring: AtomicU32,
    /// Number of processes that could not create a ring, because they were forked where system
    /// calls may be forbidden.
    pub forked_in_sandbox: AtomicU32,
    /// The collector's PID namespace; 0 if unknown.
    pub namespace: AtomicU64,
    /// Mean number of requested bytes between two sample points; 0 if every call is recorded. Set
    /// before the command starts.
    pub sample_bytes: AtomicU64,
    /// Mean number of requested bytes between two points at which a stack is recorded; 1 if every
    /// recorded call has one, 0 if none has.
    pub stack_bytes: AtomicU64,
    /// Number of stacks that were not recorded, because shared memory ran out or a sandbox
    /// prevented it.
    pub stacks_left_out: AtomicU64,
    /// Number of sampled blocks that were not recorded, because they could not be marked.
    pub left_out: AtomicU64,
    /// Minimum duration, in ticks, of a timed call that counts as interrupted. Set before the
    /// command starts.
    pub interrupted: AtomicU64,
}

/// Entry of a ring: a recorded operation, or data that belong to the following entries.
#[repr(C, align(16))]
pub struct Entry {
    /// The lowest bits of the processor's counter ([`STAMP_BITS`]) with the size above them, or the
    /// value that the code defines.
    pub detail: AtomicU64,
    /// Address (48 bits), code (8 bits), lap (8 bits). Written last.
    pub tag: AtomicU64,
}

/// Number of bits of an address, and position of the code in a tag.
pub const ADDRESS_BITS: u32 = 48;
/// Position of the lap in a tag.
pub const LAP_SHIFT: u32 = 56;

/// Number of bits of the processor's counter in an entry, which cover 7 minutes at 2.6 GHz.
pub const STAMP_BITS: u32 = 40;
/// Minimum size that an operation's entry cannot contain. The size field then holds this value as a
/// marker, and a preceding entry with [`code::SIZE`] contains the size.
pub const LONG: u64 = (1 << (u64::BITS - STAMP_BITS)) - 1;
/// Number of ticks after which a thread writes its complete time. A reader assumes the time that is
/// nearest to the previous entry's time, so the limit is less than half the range of the bits.
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
    /// A code, plus the function's number if the code is one of the first three.
    pub code: u8,
}

/// Ring of recorded operations, into which one thread at a time writes.
#[repr(C)]
pub struct Ring {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// ID of the process, in its own PID namespace.
    pub pid: u32,
    /// ID of the writing thread, in its own PID namespace.
    pub tid: AtomicU32,
    /// Identity of the process's current program among all programs of all processes: the
    /// processor's counter when the program's first ring was assigned.
    pub image: u64,
    /// Identity of the program from which this one was forked; 0 for an executed program.
    pub parent: u64,
    /// The processor's counter when the process was forked. If that time is unknown, the counter
    /// when the process's first ring was assigned.
    pub forked: u64,
    /// PID namespace of the process: the number of its file; 0 if unknown.
    pub namespace: u64,
    /// Number of ticks for which threads waited until the collector made room.
    pub waited: AtomicU64,
    /// Not 0 if the process has stopped recording.
    pub gave_up: AtomicU32,
    /// Not 0 if the collector no longer reads the ring.
    pub abandoned: AtomicU32,
    /// Address of the process's next ring, in the memory of the process.
    pub next: usize,
    /// Address of the thread's ring of stacks, in the memory of the process; 0 if there is none
    /// yet, 1 if it cannot be created.
    pub stacks: AtomicUsize,
    /// Number of the ring, unique in the process.
    pub number: u32,
    /// Processor time of the process when its program began, in nanoseconds.
    pub began: u64,
    /// Path of the executable, with a terminating zero.
    pub program: [u8; PATH_BYTES],
    /// Path of the object that serves malloc, with a terminating zero.
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

/// Sums over the timed calls of a ring's threads. Sums of ticks of the processor's counter are
/// signed numbers in two's complement.
#[repr(C)]
pub struct Timing {
    /// Number of timed calls, except interrupted ones.
    pub calls: AtomicU64,
    /// Ticks that the timed calls spent in the allocator.
    pub ticks: AtomicU64,
    /// Sum of the squares of each call's ticks in the allocator.
    pub squares: AtomicU64,
    /// Ticks that the recording of these calls took.
    pub recording: AtomicU64,
    /// Sum of the squares of the ticks that the recording of each call took.
    pub recording_squares: AtomicU64,
    /// Number of timed calls that were interrupted, and are not in the sums.
    pub interrupted: AtomicU64,
    /// Processor time of the process when it exited, in nanoseconds; 0 unless a thread of this ring
    /// exited the process.
    pub processor_time: AtomicU64,
    /// Processor time of the process when a timed call of this ring's threads last recorded it, in
    /// nanoseconds.
    pub latest_time: AtomicU64,
    /// Calls that request or free a large block, which are not in the sums above.
    pub large: LargeTiming,
}

/// Sums over the calls of a ring's threads that request or free a large block. Each of them is
/// timed if the thread may read the clock. Sums of times are signed numbers in two's complement.
#[repr(C)]
pub struct LargeTiming {
    /// Number of calls, timed or not.
    pub calls: AtomicU64,
    /// Number of timed calls, except interrupted ones.
    pub timed: AtomicU64,
    /// Ticks that the calls spent in the allocator, for calls that were timed by ticks.
    pub ticks: AtomicU64,
    /// Nanoseconds of processor time that the calls spent in the allocator, for calls that were
    /// timed by processor time.
    pub nanoseconds: AtomicU64,
    /// Ticks that the recording took, for calls that were timed by ticks.
    pub recording_ticks: AtomicU64,
    /// Nanoseconds of processor time that the recording took, for calls that were timed by
    /// processor time.
    pub recording_nanoseconds: AtomicU64,
    /// Number of timed calls that were interrupted, and are not in the sums.
    pub interrupted: AtomicU64,
}

/// A word in its own cache line. The thread writes `reserved` and the collector writes `taken`, so
/// a shared line would move between their processors.
#[repr(C, align(128))]
pub struct Line(pub AtomicU64);

/// Returns the number of the lap that contains the entry with this index, modulo the range of a
/// tag's lap.
pub const fn lap(index: u64) -> u64 {
    // The memory of a new ring is zero, so the first lap is 1.
    ((index / ENTRIES) + 1) & 0xff
}

impl Ring {
    /// Reserves entries for the calling thread, the only one that writes to this ring. Returns the
    /// index of the first.
    #[inline]
    pub fn reserve(&self, number: u64) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            let mut index = number;
            // SAFETY: the word belongs to this ring. A signal handler cannot interrupt a single
            // instruction. Only one thread writes the word, so the instruction need not be locked,
            // which would cost three times as much.
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
        // Relaxed: no other thread writes the word; the atomic addition excludes this thread's
        // signal handlers.
        self.reserved.0.fetch_add(number, Ordering::Relaxed)
    }

    /// Returns the first index whose entry is not free.
    #[inline]
    pub fn limit(&self) -> u64 {
        // Acquire: pairs with the collector's release, so the collector has read the entries that
        // are overwritten.
        self.taken.0.load(Ordering::Acquire) + ENTRIES
    }

    /// Writes an operation into a reserved entry, whose index is below the limit. If the size is
    /// [`LONG`] or more, the entry only shows that the size precedes it.
    #[inline]
    pub fn write(&self, index: u64, event: Event) {
        let stamp = event.stamp & ((1 << STAMP_BITS) - 1);
        let detail = event.size.min(LONG) << STAMP_BITS | stamp;
        self.write_whole(index, event.code, event.address, detail);
    }

    /// Writes a reserved entry, whose index is below the limit.
    #[inline]
    pub fn write_whole(&self, index: u64, code: u8, address: u64, detail: u64) {
        let entry = &self.entries[(index % ENTRIES) as usize];
        let address = address & ((1 << ADDRESS_BITS) - 1);
        let tag = address | u64::from(code) << ADDRESS_BITS | lap(index) << LAP_SHIFT;
        entry.detail.store(detail, Ordering::Relaxed);
        // Release: pairs with the acquire of the collector, so the collector sees the entry's other
        // word.
        entry.tag.store(tag, Ordering::Release);
    }
}
