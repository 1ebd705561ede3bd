//! Keeps the record of this process in a file of this library's folder, mapped shared.

use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::clock;
use crate::folder;
use crate::kernel;
use crate::layout::{FOLLOW, FUNCTIONS, Followed, MAGIC, OBJECTS, OwnCalls, PATH_BYTES, Record};
use crate::ring::CONTROL;

/// Record in which calls are counted; null until it is created.
static RECORD: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// State of [`RECORD`]: 0 if there is no record, 1 while a thread creates it, 2 when it is
/// complete.
static STATE: AtomicU32 = AtomicU32::new(0);

/// Record in memory for processes that cannot create a file, so that counting never fails.
struct Private(core::cell::UnsafeCell<core::mem::MaybeUninit<Record>>);

// SAFETY: the value is only used through a raw pointer. Its counts and indexes are written
// atomically. A path is written by the thread that has claimed its place, and read only after the
// place's bit is set. The other fields are written by the thread that creates the record.
unsafe impl Sync for Private {}

static PRIVATE: Private = Private(core::cell::UnsafeCell::new(core::mem::MaybeUninit::zeroed()));

/// Returns the record of this process. Creates it on first use.
pub fn current() -> *mut Record {
    loop {
        match STATE.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let record = create();
                RECORD.store(record, Ordering::Release);
                STATE.store(2, Ordering::Release);
                return record;
            }
            Err(2) => return RECORD.load(Ordering::Acquire),
            // The wait is short: creating a record takes a few system calls, and no lock once this
            // library's folder is known.
            Err(_) => kernel::yield_to_others(),
        }
    }
}

/// Begins a new record in a child that has just been forked. Copies the parent's objects,
/// calibration and live bytes, but no other counts. Returns the parent's record and the new one.
/// Returns `None` if the parent has no record, or if parent and child both use the static record of
/// processes that cannot create a file.
pub fn renew() -> Option<(*mut Record, *mut Record)> {
    let old = RECORD.load(Ordering::Acquire);
    if old.is_null() {
        // The parent has no record, or another of its threads was creating one. So the first use in
        // the child creates a record.
        STATE.store(0, Ordering::Release);
        return None;
    }
    let new = create();
    RECORD.store(new, Ordering::Release);
    if new == old {
        return None;
    }
    // SAFETY: both records are mapped and do not overlap, and the child has one thread. Threads of
    // the parent may still write to the old record, but no path whose bit is set.
    unsafe {
        // Acquire: if a copied value is the number of an object, the object's path and its bit in
        // `objects_complete` are visible to the later copies.
        let copy = |from: &AtomicU64, to: &AtomicU64| {
            let value = from.load(Ordering::Acquire);
            to.store(value, Ordering::Relaxed);
            value
        };
        copy(&(*old).first_malloc, &(*new).first_malloc);
        for index in 0..FUNCTIONS.len() {
            let from = &(*old).functions[index].object;
            copy(from, &(*new).functions[index].object);
        }
        let complete = copy(&(*old).objects_complete, &(*new).objects_complete);
        for place in places(complete) {
            (*new).objects[place] = (*old).objects[place];
        }
        copy(&(*old).objects_used, &(*new).objects_used);
        let (from, to) = (&(*old).followed, &(*new).followed);
        let live = from.live.load(Ordering::Relaxed);
        to.live.store(live, Ordering::Relaxed);
        to.peak.store(live, Ordering::Relaxed);
        let calibration = from.calibration.load(Ordering::Relaxed);
        to.calibration.store(calibration, Ordering::Relaxed);
        // Count the unmapping of the parent's record, which the child does next.
        to.own.munmap.store(1, Ordering::Relaxed);
    }
    Some((old, new))
}

/// Returns the findings on blocks. Functions that follow blocks are called only after the record
/// was created.
pub fn followed() -> &'static Followed {
    // SAFETY: the record was created and is mapped. A forked child unmaps its parent's record only
    // after it has created its own.
    unsafe { &(*RECORD.load(Ordering::Acquire)).followed }
}

/// Increments a count of the library's own system calls.
pub fn add_own_call(of: fn(&OwnCalls) -> &AtomicU64) {
    of(&followed().own).fetch_add(1, Ordering::Relaxed);
}

/// Mode of the library, which determines the handling of every call.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Counts calls.
    Counting = 1,
    /// Counts calls and follows every block.
    Following = 2,
    /// Writes calls into rings instead of counting them.
    Recording = 3,
}

/// Returns the mode that a file in this library's folder requests; [`Mode::Counting`] if there is
/// none. Looks for the file only once.
pub fn mode() -> Mode {
    static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
    const UNKNOWN: u32 = 0;
    const FOLLOWING: u32 = Mode::Following as u32;
    const RECORDING: u32 = Mode::Recording as u32;
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let mode = find_mode();
            KNOWN.store(mode as u32, Ordering::Relaxed);
            mode
        }
        FOLLOWING => Mode::Following,
        RECORDING => Mode::Recording,
        _ => Mode::Counting,
    }
}

fn find_mode() -> Mode {
    if folder::has(CONTROL.as_bytes()) {
        Mode::Recording
    } else if folder::has(FOLLOW.as_bytes()) {
        current();
        followed()
            .calibration
            .store(clock::calibrate(), Ordering::Relaxed);
        Mode::Following
    } else {
        Mode::Counting
    }
}

/// Unmaps a record and keeps its file. Does nothing for the static record of processes that cannot
/// create a file.
///
/// # Safety
/// `record` comes from [`renew`], and nothing refers to it any longer.
pub unsafe fn discard(record: *mut Record) {
    if record != PRIVATE.0.get().cast() {
        // SAFETY: nothing refers to the record any longer, and it was mapped with this length.
        unsafe { kernel::unmap(record.cast(), size_of::<Record>()) };
    }
}

fn create() -> *mut Record {
    let mut digits = [0_u8; 20];
    let process = kernel::process();
    let name = folder::decimal(process.into(), &mut digits);
    let mapped = folder::map(name, true, size_of::<Record>());
    let record = mapped.unwrap_or(PRIVATE.0.get().cast()).cast::<Record>();
    // SAFETY: the record is mapped writable. No other thread knows it yet, or the process is a
    // forked child with one thread.
    unsafe {
        (*record).process = u64::from(process);
        addr_of_mut!((*record).magic).write_volatile(MAGIC);
    }
    record
}

/// Returns the places of a record's objects whose bits are set.
fn places(complete: u64) -> impl Iterator<Item = usize> {
    (0..OBJECTS).filter(move |place| (complete >> place) & 1 == 1)
}

/// Returns an object's index in the record plus one, and adds the object if it is new. Returns 0 if
/// the record has no room. If two threads name one object concurrently, the record may contain it
/// twice, which is harmless.
///
/// # Safety
/// `record` comes from [`current`] or [`renew`].
pub unsafe fn name_object(record: *mut Record, path: &[u8]) -> u64 {
    let path = &path[..path.len().min(PATH_BYTES - 1)];
    // SAFETY: the record stays mapped. Only the thread that has claimed a place writes its path,
    // before it sets the place's bit. Other threads read the path only after they have loaded the
    // bit.
    unsafe {
        // Acquire: pairs with the release below.
        let complete = (*record).objects_complete.load(Ordering::Acquire);
        for place in places(complete) {
            let named = &(*record).objects[place];
            if named.starts_with(path) && named[path.len()] == 0 {
                return place as u64 + 1;
            }
        }
        // Relaxed: a claim publishes nothing.
        let place = (*record).objects_used.fetch_add(1, Ordering::Relaxed) as usize;
        if place >= OBJECTS {
            return 0;
        }
        let target = addr_of_mut!((*record).objects[place]).cast::<u8>();
        core::ptr::copy_nonoverlapping(path.as_ptr(), target, path.len());
        // Release: publishes the path.
        let bit = 1 << place;
        (*record).objects_complete.fetch_or(bit, Ordering::Release);
        place as u64 + 1
    }
}
