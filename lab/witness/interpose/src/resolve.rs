//! Finds the functions to which calls are passed on, and fills the slots. Also begins the record or
//! the recording of a process or a forked child.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::addr_of_mut;
use core::sync::atomic::Ordering;

use crate::counting;
use crate::elf;
use crate::fallback;
use crate::follow;
use crate::late;
use crate::layout::{FUNCTIONS, MALLOC, PATH_BYTES, Record};
use crate::own;
use crate::passages;
use crate::record::{self, Mode};
use crate::ring_supply;
use crate::rings;
use crate::slots::{self, SLOTS, Slot};
use crate::system::{self, ObjectInfo};
use crate::thread::thread;
use crate::timing;

/// A search through the loaded objects, in the order in which the loader searches them.
struct Search {
    name: &'static str,
    /// Whether the search includes this library and the objects before it.
    from_start: bool,
    passed_self: bool,
    found: Option<Found>,
}

struct Found {
    address: usize,
    low: usize,
    span: usize,
    is_self: bool,
    path: [u8; PATH_BYTES],
    path_length: usize,
}

impl Search {
    const fn new(name: &'static str, from_start: bool) -> Self {
        Self {
            name,
            from_start,
            passed_self: false,
            found: None,
        }
    }
}

fn search(name: &'static str, from_start: bool) -> Option<Found> {
    let mut search = Search::new(name, from_start);
    // SAFETY: `visit` casts the data back to the type of `search`.
    unsafe { system::dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn visit(object: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` and `late::each` pass a valid object, and their callers here pass a
    // `Search` as `data`.
    let (object, search) = unsafe { (&*object, &mut *data.cast::<Search>()) };
    let (low, span) = elf::extent(object);
    let is_self = ((&raw const SLOTS) as usize).wrapping_sub(low) < span;
    let eligible = search.from_start || search.passed_self;
    search.passed_self |= is_self;
    if !eligible {
        return 0;
    }
    // SAFETY: the object is loaded. It stays loaded during the call, because the loader holds its
    // lock, or this is a forked child with one thread.
    let address =
        unsafe { elf::tables(object).and_then(|tables| elf::definition(&tables, search.name)) };
    let Some(address) = address else { return 0 };
    let mut path = [0; PATH_BYTES];
    // SAFETY: the loader's names end with a zero.
    let name = unsafe { CStr::from_ptr(object.name) }.to_bytes();
    let path_length = name.len().min(PATH_BYTES - 1);
    path[..path_length].copy_from_slice(&name[..path_length]);
    search.found = Some(Found {
        address,
        low,
        span,
        is_self,
        path,
        path_length,
    });
    1
}

/// Fills the slot of a function that was called for the first time.
pub extern "C" fn resolve_slot(slot: *const Slot) {
    resolve(slots::index(slot));
}

/// Fills the slot of a function, and keeps errno.
fn resolve(index: usize) {
    // SAFETY: every thread has an errno. Programs read it after free and after a failed malloc, so
    // it is restored below.
    let errno = unsafe { *system::__errno_location() };
    fill(index);
    // SAFETY: every thread has an errno.
    unsafe { *system::__errno_location() = errno };
}

fn fill(index: usize) {
    match search(FUNCTIONS[index], false) {
        Some(found) => bind(index, &found),
        None => {
            // Nearly every replacement calls another function of this library, which counts the
            // call, so this slot has no counter.
            let slot = &SLOTS[index];
            let stand_in = fallback::for_function(FUNCTIONS[index]);
            slot.counter.store(0, Ordering::Relaxed);
            slot.counted_next.store(stand_in, Ordering::Relaxed);
            slot.served.store(stand_in, Ordering::Relaxed);
            slot.next.store(stand_in, Ordering::Release);
            slot.enter(counting::testing(index, record::mode()));
        }
    }
}

fn bind(index: usize, found: &Found) {
    let slot = &SLOTS[index];
    let path = &found.path[..found.path_length];
    let in_libc = path.ends_with(b"/libc.so.6");
    // glibc's reallocarray calls realloc by name, and that call is counted.
    let counted = !(in_libc && FUNCTIONS[index] == "reallocarray");
    let is_runtime = contains(path, b"/libstdc++.so") || contains(path, b"/libc++.so");
    let mode = record::mode();
    let counter = match mode {
        Mode::Recording => {
            recording_begins(index, path);
            0
        }
        Mode::Counting | Mode::Following => counter(index, path, counted),
    };
    // If a function passes requests on to malloc or realloc by name, the passage of that function
    // follows or records them.
    let counted_next = match mode {
        _ if !counted || is_runtime => found.address,
        Mode::Counting => found.address,
        Mode::Following => follow::follow as *const () as usize,
        Mode::Recording => passages::passage(index).unwrap_or(found.address),
    };
    slot.counter.store(counter, Ordering::Relaxed);
    slot.counted_next.store(counted_next, Ordering::Relaxed);
    slot.served.store(found.address, Ordering::Relaxed);
    // glibc's internal calls, such as the call to `malloc` in `strdup`, count as calls of the
    // program. So glibc's slots have an empty range of callers. In a recording, an entry point that
    // glibc serves does not test its callers, because no function of glibc passes a call on by a
    // jump to another recorded one. An entry point that records no calls does not test them either.
    let own = (&raw const *slot) as usize;
    let (low, span) = if in_libc {
        (own, 0)
    } else {
        (found.low, found.span)
    };
    slot.low.store(low, Ordering::Relaxed);
    slot.span.store(span, Ordering::Relaxed);
    slot.next.store(found.address, Ordering::Release);
    slot.enter(match mode {
        Mode::Recording if in_libc || counted_next == found.address => counted_next,
        _ => counting::testing(index, mode),
    });
}

/// Records which object serves a function, and returns the function's counter; 0 if its calls are
/// not counted.
fn counter(index: usize, path: &[u8], counted: bool) -> usize {
    let record = record::current();
    // SAFETY: the record comes from `current` and stays mapped, and all uses of its counters are
    // atomic. If several threads bind a function at the same time, each stores an index of the same
    // path in `object`.
    unsafe {
        let object = record::name_object(record, path);
        // Release: pairs with the acquire in `renew`, whose child then also copies the path.
        let target = &(*record).functions[index].object;
        target.store(object, Ordering::Release);
        let counter = addr_of_mut!((*record).functions[index].calls);
        if counted { counter as usize } else { 0 }
    }
}

fn recording_begins(index: usize, path: &[u8]) {
    if index == MALLOC {
        ring_supply::set_server(path);
    }
    rings::begin();
}

fn contains(path: &[u8], part: &[u8]) -> bool {
    path.windows(part.len()).any(|window| window == part)
}

/// Begins the record or the recording of this process. A record shows which object serves malloc,
/// and whether the loader finds this library's malloc first.
///
/// Binds every function that is defined by now. Functions of objects that are loaded later are
/// bound by their first call, or in a forked child by [`bind_late`].
pub fn begin() {
    late::begin();
    resolve(MALLOC);
    for (index, slot) in SLOTS.iter().enumerate() {
        if slot.next.load(Ordering::Acquire) == 0
            && let Some(found) = search(FUNCTIONS[index], false)
        {
            bind(index, &found);
        }
    }
    let Some(first) = search(FUNCTIONS[MALLOC], true) else {
        return;
    };
    if first.is_self || record::mode() == Mode::Recording {
        return;
    }
    let record = record::current();
    // SAFETY: the record comes from `current` and stays mapped.
    unsafe {
        let object = record::name_object(record, &first.path[..first.path_length]);
        // Release: pairs with the acquire in `renew`.
        (*record).first_malloc.store(object, Ordering::Release);
    }
}

/// Binds the functions that are defined only by objects loaded after the program's start. Runs in a
/// child that was just forked. The first call to such a function would otherwise wait for the
/// loader's lock, which a thread of the parent may have held.
fn bind_late() {
    if !late::any() {
        return;
    }
    for (index, slot) in SLOTS.iter().enumerate() {
        if slot.next.load(Ordering::Acquire) != 0 {
            continue;
        }
        let mut search = Search::new(FUNCTIONS[index], true);
        // SAFETY: the child has one thread, and `visit` casts the data back to the type of
        // `search`.
        unsafe { late::each(visit, (&raw mut search).cast()) };
        if let Some(found) = search.found {
            bind(index, &found);
        }
    }
}

/// Begins a separate record or recording in a forked child.
pub unsafe extern "C" fn after_fork() {
    // SAFETY: every thread has an errno.
    let errno = unsafe { *system::__errno_location() };
    own::begin_image();
    thread().renew_samples();
    // The processor time of a forked process begins at 0.
    timing::begin_process(0);
    if let Some((old, new)) = record::renew() {
        for slot in &SLOTS {
            let offset = slot
                .counter
                .load(Ordering::Relaxed)
                .wrapping_sub(old as usize);
            if offset < size_of::<Record>() {
                slot.counter.store(new as usize + offset, Ordering::Relaxed);
            }
        }
        // SAFETY: `old` comes from `renew`, and no slot refers to it any longer.
        unsafe { record::discard(old) };
    }
    bind_late();
    // SAFETY: every thread has an errno.
    unsafe { *system::__errno_location() = errno };
}
