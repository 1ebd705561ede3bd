//! The record of this process: a file beside the library, mapped shared.

use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::clock;
use crate::folder;
use crate::kernel;
use crate::layout::{FOLLOW, FUNCTIONS, Followed, MAGIC, OBJECTS, OwnCalls, PATH_BYTES, Record};
use crate::ring::CONTROL;

/// The record that calls are counted in; null until the first call.
static RECORD: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// 0: there is no record, 1: a thread is making it, 2: it is complete.
static STATE: AtomicU32 = AtomicU32::new(0);

/// Stands in where no file can be made, so that counting never fails.
struct Private(core::cell::UnsafeCell<core::mem::MaybeUninit<Record>>);

// SAFETY: it is only handed out as a raw pointer, and its fields are written by atomics or under
// the claim of a place.
unsafe impl Sync for Private {}

static PRIVATE: Private = Private(core::cell::UnsafeCell::new(core::mem::MaybeUninit::zeroed()));

/// Returns the record of this process, made on first use.
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
            // Making a record takes a few system calls and no lock.
            Err(_) => kernel::yield_to_others(),
        }
    }
}

/// Begins a new record in a child that has just been forked, with the contents of the parent's
/// record except the counts. Returns the parent's record and the new one, if both exist.
pub fn renew() -> Option<(*mut Record, *mut Record)> {
    let old = RECORD.load(Ordering::Acquire);
    if old.is_null() {
        // Another thread of the parent was creating the record.
        STATE.store(0, Ordering::Release);
        return None;
    }
    let new = create();
    RECORD.store(new, Ordering::Release);
    if new == old {
        return None;
    }
    // SAFETY: both are mapped and do not overlap, and the child has one thread.
    unsafe {
        (*new).first_malloc = (*old).first_malloc;
        (*new).objects_used = (*old).objects_used;
        (*new).objects = (*old).objects;
        for index in 0..FUNCTIONS.len() {
            (*new).functions[index].object = (*old).functions[index].object;
        }
        let (from, to) = (&(*old).followed, &(*new).followed);
        let live = from.live.load(Ordering::Relaxed);
        to.live.store(live, Ordering::Relaxed);
        to.peak.store(live, Ordering::Relaxed);
        let calibration = from.calibration.load(Ordering::Relaxed);
        to.calibration.store(calibration, Ordering::Relaxed);
        // Counts the unmapping of the parent's record, which the child does next.
        to.own.munmap.store(1, Ordering::Relaxed);
    }
    Some((old, new))
}

/// Returns the findings on blocks. A function that follows them is called only once there is a
/// record.
pub fn followed() -> &'static Followed {
    // SAFETY: the record is mapped. A forked child unmaps its parent's record only after it has
    // created its own.
    unsafe { &(*RECORD.load(Ordering::Acquire)).followed }
}

/// Adds one to a count of the library's own calls to the system.
pub fn add_own_call(of: fn(&OwnCalls) -> &AtomicU64) {
    of(&followed().own).fetch_add(1, Ordering::Relaxed);
}

/// Purpose for which the library follows calls.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Counts calls.
    Counting = 1,
    /// Counts calls and follows every block.
    Following = 2,
    /// Writes calls into rings, and keeps no record.
    Recording = 3,
}

/// Returns the mode that a file beside this library asks for; looked up once.
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

/// Unmaps a record. The record's file remains.
///
/// # Safety
/// Nothing refers to the record any more.
pub unsafe fn discard(record: *mut Record) {
    if record != PRIVATE.0.get().cast() {
        // SAFETY: as for this function; the record was mapped with this length.
        unsafe { kernel::unmap(record.cast(), size_of::<Record>()) };
    }
}

fn create() -> *mut Record {
    let mut digits = [0_u8; 20];
    let process = kernel::process();
    let name = folder::decimal(process.into(), &mut digits);
    let mapped = folder::map(name, true, size_of::<Record>());
    let record = mapped.unwrap_or(PRIVATE.0.get().cast()).cast::<Record>();
    // SAFETY: the record is mapped writable, zeroed, and known to this thread alone until now.
    unsafe {
        (*record).process = u64::from(process);
        addr_of_mut!((*record).magic).write_volatile(MAGIC);
    }
    record
}

/// Returns the place plus one under which the record names an object, or 0 where it has no room.
///
/// # Safety
/// `record` comes from [`current`].
pub unsafe fn name_object(record: *mut Record, path: &[u8]) -> u64 {
    let path = &path[..path.len().min(PATH_BYTES - 1)];
    // SAFETY: the record stays mapped; a place is written by the one thread that claimed it, and
    // two threads that name an object at once only name it twice.
    unsafe {
        let used = AtomicU64::from_ptr(addr_of_mut!((*record).objects_used));
        let known = (used.load(Ordering::Acquire) as usize).min(OBJECTS);
        for place in 0..known {
            let named = &(&(*record).objects)[place];
            if named.starts_with(path) && named[path.len()] == 0 {
                return place as u64 + 1;
            }
        }
        let place = used.fetch_add(1, Ordering::AcqRel) as usize;
        if place >= OBJECTS {
            return 0;
        }
        let target = addr_of_mut!((*record).objects[place]).cast::<u8>();
        core::ptr::copy_nonoverlapping(path.as_ptr(), target, path.len());
        place as u64 + 1
    }
}
