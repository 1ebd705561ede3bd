//! The record of this process: a file beside the library, mapped shared.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::elf;
use crate::layout::{FOLLOW, FUNCTIONS, Followed, MAGIC, OBJECTS, OwnCalls, PATH_BYTES, Record};
use crate::system::{self, ObjectInfo};

/// The record that calls are counted in; null until the first call.
static RECORD: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// 0: nobody has made the record, 1: a thread is making it, 2: it is there.
static STATE: AtomicU32 = AtomicU32::new(0);

/// Stands in where no file can be made, so that counting never fails.
struct Private(core::cell::UnsafeCell<core::mem::MaybeUninit<Record>>);

// SAFETY: it is only handed out as a raw pointer, and its fields are written by atomics or under
// the claim of a place.
unsafe impl Sync for Private {}

static PRIVATE: Private = Private(core::cell::UnsafeCell::new(core::mem::MaybeUninit::zeroed()));

/// The record of this process, made on first use.
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
            // SAFETY: no precondition. Making a record takes a few system calls and no lock.
            Err(_) => unsafe {
                system::sched_yield();
            },
        }
    }
}

/// Begins a new record in a child that has just been forked, which knows all that the parent's
/// tells but the counts. Gives the parent's and the new one, if both are there.
pub fn renew() -> Option<(*mut Record, *mut Record)> {
    let old = RECORD.load(Ordering::Acquire);
    if old.is_null() {
        // Another thread of the parent was about to make one.
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
        // The child will take the old record away.
        to.own.munmap.store(1, Ordering::Relaxed);
    }
    Some((old, new))
}

/// What is known of blocks. A function that follows them is called only once there is a record.
pub fn followed() -> &'static Followed {
    // SAFETY: the record is mapped; a forked child, which takes it away, has made another before.
    unsafe { &(*RECORD.load(Ordering::Acquire)).followed }
}

/// Adds one to a count of the library's own calls to the system.
pub fn add_own_call(of: fn(&OwnCalls) -> &AtomicU64) {
    of(&followed().own).fetch_add(1, Ordering::Relaxed);
}

/// Whether blocks are to be followed; looked up once.
pub fn is_following() -> bool {
    static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
    const UNKNOWN: u32 = 0;
    const NO: u32 = 1;
    const YES: u32 = 2;
    if KNOWN.load(Ordering::Relaxed) == UNKNOWN {
        let known = if is_asked_to_follow() { YES } else { NO };
        KNOWN.store(known, Ordering::Relaxed);
        if known == YES {
            let ticks = system::calibrate();
            followed().calibration.store(ticks, Ordering::Relaxed);
        }
    }
    KNOWN.load(Ordering::Relaxed) == YES
}

/// Whether the file that asks for it lies beside this library.
fn is_asked_to_follow() -> bool {
    let mut path = [0_u8; PATH_BYTES];
    let Some(folder) = own_folder(&mut path) else {
        return false;
    };
    let Some(place) = path.get_mut(folder..folder + FOLLOW.len() + 1) else {
        return false;
    };
    place[..FOLLOW.len()].copy_from_slice(FOLLOW.as_bytes());
    place[FOLLOW.len()] = 0;
    // SAFETY: the path ends with a zero.
    unsafe {
        let file = system::open(path.as_ptr().cast(), system::O_CLOEXEC);
        file >= 0 && system::close(file) == 0
    }
}

/// Takes a record out of this process's memory; its file stays.
///
/// # Safety
/// Nothing refers to the record any more.
pub unsafe fn discard(record: *mut Record) {
    if record != PRIVATE.0.get().cast() {
        // SAFETY: as for this function; the record was mapped with this length.
        unsafe { system::munmap(record.cast(), size_of::<Record>()) };
    }
}

fn create() -> *mut Record {
    let record = map().unwrap_or(PRIVATE.0.get().cast());
    // SAFETY: the record is mapped writable, zeroed, and known to this thread alone until now.
    unsafe {
        (*record).process = u64::from(system::getpid().unsigned_abs());
        addr_of_mut!((*record).magic).write_volatile(MAGIC);
    }
    record
}

/// A file named after this process in the folder of this library, mapped.
fn map() -> Option<*mut Record> {
    let mut path = [0_u8; PATH_BYTES];
    let folder = match FOLDER.length.load(Ordering::Acquire) {
        0 => own_folder(&mut path)?,
        known => known,
    };
    // SAFETY: one thread at a time makes a record, and only here is the folder touched.
    unsafe {
        let kept = FOLDER.path.get().cast::<u8>();
        if FOLDER.length.swap(folder, Ordering::AcqRel) == 0 {
            core::ptr::copy_nonoverlapping(path.as_ptr(), kept, folder);
        } else {
            core::ptr::copy_nonoverlapping(kept, path.as_mut_ptr(), folder);
        }
    }
    let mut digits = [0_u8; 10];
    // SAFETY: no precondition.
    let mut rest = unsafe { system::getpid() }.unsigned_abs();
    let mut first = digits.len();
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let name = &digits[first..];
    path.get_mut(folder..folder + name.len())?
        .copy_from_slice(name);
    *path.get_mut(folder + name.len())? = 0;
    let length = size_of::<Record>();
    // SAFETY: the path ends with a zero; a file that was just made is given room before it is
    // mapped, so that touching the mapping cannot fail for lack of space.
    unsafe {
        let path = path.as_ptr().cast::<c_char>();
        let file = system::open(path, system::O_RDWR_CREAT_EXCL_CLOEXEC, 0o600_u32);
        if file < 0 {
            return None;
        }
        let room = system::fallocate(file, 0, 0, length as _) == 0 || fill(file, length);
        let protection = system::PROT_READ_WRITE;
        let address = if room {
            system::mmap(null_mut(), length, protection, system::MAP_SHARED, file, 0)
        } else {
            usize::MAX as *mut c_void
        };
        system::close(file);
        if address as usize == usize::MAX {
            system::unlink(path);
            return None;
        }
        Some(address.cast())
    }
}

/// Gives a file room by writing zeros, for file systems that cannot give it otherwise, such as NFS.
fn fill(file: c_int, length: usize) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    let mut left = length;
    while left > 0 {
        let part = left.min(ZEROS.len());
        // SAFETY: the buffer holds at least `part` bytes.
        let written = unsafe { system::write(file, ZEROS.as_ptr().cast(), part) };
        if written <= 0 {
            return false;
        }
        left -= written.unsigned_abs().min(left);
    }
    true
}

/// The folder of this library, kept for forked children, where another thread of the parent may
/// have held the loader's lock.
struct Kept {
    path: core::cell::UnsafeCell<[u8; PATH_BYTES]>,
    length: AtomicUsize,
}

// SAFETY: only the one thread that makes a record touches the path.
unsafe impl Sync for Kept {}

static FOLDER: Kept = Kept {
    path: core::cell::UnsafeCell::new([0; PATH_BYTES]),
    length: AtomicUsize::new(0),
};

struct Folder<'a> {
    path: &'a mut [u8; PATH_BYTES],
    length: Option<usize>,
}

/// Writes the folder of this library, with its last slash, and returns its length.
fn own_folder(path: &mut [u8; PATH_BYTES]) -> Option<usize> {
    let mut folder = Folder { path, length: None };
    // SAFETY: `visit` reads the data as what is given here.
    unsafe { system::dl_iterate_phdr(visit, (&raw mut folder).cast()) };
    return folder.length;

    unsafe extern "C" fn visit(object: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader gives a valid object, and `data` is the folder above.
        let (object, folder) = unsafe { (&*object, &mut *data.cast::<Folder>()) };
        let (low, span) = elf::extent(object);
        if ((&raw const STATE) as usize).wrapping_sub(low) >= span {
            return 0;
        }
        // SAFETY: the loader's names end with a zero.
        let name = unsafe { CStr::from_ptr(object.name) }.to_bytes();
        let length = name
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        if length > 0 && length < PATH_BYTES {
            folder.path[..length].copy_from_slice(&name[..length]);
            folder.length = Some(length);
        }
        1
    }
}

/// The place plus one under which the record names an object, or 0 where it has no room.
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
