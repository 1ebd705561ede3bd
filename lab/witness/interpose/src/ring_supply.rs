//! Supplies threads with rings: rings of ended threads, rings that were created in advance, and new
//! ones.

use core::sync::atomic::Ordering;

use crate::clock::clock;
use crate::folder::{self, Name};
use crate::kernel;
use crate::own::{IMAGE, NAMESPACE, Own, PARENT, control, pid};
use crate::ring::{MAGIC, PATH_BYTES, PREFIX, Ring, code};
use crate::system;
use crate::thread::thread;
use crate::timing;
use crate::waiting::wait;

/// Path of the object that serves malloc. Written before the first ring is created.
struct Server(core::cell::UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: `set_server` writes at the program's first call to malloc, before the program starts a
// thread. If this library's constructor calls it again, it writes the same bytes. Otherwise the
// bytes are only read.
unsafe impl Sync for Server {}

static SERVER: Server = Server(core::cell::UnsafeCell::new([0; PATH_BYTES]));

/// Thread ID of a ring that was created in advance. No thread has this ID.
pub const SPARE: u32 = u32::MAX;

/// Maximum number of rings that a thread examines to find one whose thread has ended, before it
/// creates a new ring.
const LOOKS: usize = 16;

/// Stores the path of the object that serves malloc.
pub fn set_server(path: &[u8]) {
    let length = path.len().min(PATH_BYTES - 1);
    // SAFETY: no other thread accesses the path before the first ring is created. A later call, by
    // this library's constructor, writes the bytes that are there already.
    unsafe { (&mut (*SERVER.0.get()))[..length].copy_from_slice(&path[..length]) };
}

/// Searches up to [`LOOKS`] rings for one whose thread has ended. Gives that ring to the thread
/// `me`, and returns it. Returns `None` if the search finds no such ring, or the recording is over.
/// A ring that already has the ID `me` belonged to an ended thread, whose ID was reused. The caller
/// holds the lock on the rings.
pub fn reuse(own: &Own, me: u32) -> Option<&'static Ring> {
    let mut ring = own.cursor.load(Ordering::Relaxed);
    for _ in 0..LOOKS {
        if ring.is_null() {
            ring = own.rings.load(Ordering::Relaxed);
        }
        // SAFETY: rings of the list stay mapped, and the caller holds the lock on the list.
        let current = unsafe { ring.as_ref()? };
        ring = current.next as *mut Ring;
        own.cursor.store(ring, Ordering::Relaxed);
        let writer = current.tid.load(Ordering::Relaxed);
        if (me != 0 && writer == me) || kernel::lacks_thread(current.pid, writer) {
            current.tid.store(me, Ordering::Relaxed);
            return begin_thread(current, me).then_some(current);
        }
    }
    None
}

/// Gives a ring that was created in advance to the thread `me`, and returns it. Returns `None` if
/// no such ring is left, or the recording is over. Makes no system call in a sandbox.
pub fn take_spare(own: &Own, me: u32) -> Option<&'static Ring> {
    let mut ring = own.rings.load(Ordering::Acquire);
    // SAFETY: rings of the list stay mapped, and the list of a forked child is empty.
    while let Some(current) = unsafe { ring.as_ref() } {
        // Relaxed: the acquire of the list already makes the ring's other fields visible.
        let tid = &current.tid;
        let taken = tid.compare_exchange(SPARE, me, Ordering::Relaxed, Ordering::Relaxed);
        if taken.is_ok() {
            return begin_thread(current, me).then_some(current);
        }
        ring = current.next as *mut Ring;
    }
    None
}

/// Records that the calling thread writes the following entries of a ring. Returns false if the
/// recording is over.
pub fn begin_thread(ring: &Ring, tid: u32) -> bool {
    let index = ring.reserve(1);
    if index >= ring.limit() && !wait(ring, index) {
        return false;
    }
    ring.write_whole(index, code::THREAD, tid.into(), clock());
    true
}

/// Returns a new ring, in a file of this library's folder; `None` if the file cannot be created.
/// The caller holds the lock on the rings.
pub fn make(own: &Own, tid: u32) -> Option<&'static Ring> {
    let control = control()?;
    let number = own.made.fetch_add(1, Ordering::Relaxed);
    let ring = map_new(number)?;
    // SAFETY: the file is new and mapped writable. No other thread knows the ring before it is in
    // the list, and the collector does not read it before it has its magic. The ring is not mapped
    // in a forked child, which must not write to it. No thread writes `SERVER` any longer. The path
    // ends with a zero, and `program` has `PATH_BYTES` bytes.
    unsafe {
        kernel::advise(ring.cast(), size_of::<Ring>(), system::MADV_DONTFORK);
        (*ring).pid = pid();
        (*ring).tid.store(tid, Ordering::Relaxed);
        (*ring).image = IMAGE.load(Ordering::Relaxed);
        (*ring).parent = PARENT.load(Ordering::Relaxed);
        (*ring).forked = thread().forked.get();
        (*ring).namespace = NAMESPACE.load(Ordering::Relaxed);
        (*ring).number = number;
        (*ring).began = timing::began();
        (*ring).next = own.rings.load(Ordering::Relaxed) as usize;
        (*ring).server = *SERVER.0.get();
        let program = (&raw mut (*ring).program).cast();
        kernel::readlink(c"/proc/self/exe".as_ptr(), program, PATH_BYTES - 1);
        // Release: pairs with the collector's acquire, so the collector sees the other fields.
        (*ring).magic.store(MAGIC, Ordering::Release);
    }
    // Release: pairs with the acquire of a thread that takes a spare ring, so that thread sees the
    // other fields.
    own.rings.store(ring, Ordering::Release);
    // Release: a collector that reads the number also finds the file.
    control.rings.fetch_add(1, Ordering::Release);
    // SAFETY: the ring stays mapped until the process ends or executes.
    Some(unsafe { &*ring })
}

/// Maps a new file with a unique name for a ring; `None` on failure.
fn map_new(number: u32) -> Option<*mut Ring> {
    let (pid, image) = (pid(), IMAGE.load(Ordering::Relaxed));
    let name = Name::new(PREFIX, pid, image).and(number);
    Some(folder::map(name.bytes(), true, size_of::<Ring>())?.cast())
}
