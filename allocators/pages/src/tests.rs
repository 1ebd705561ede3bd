use core::ptr::NonNull;
use core::time::Duration;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::vec::Vec;

use crate::{Access, EventCount, Linux, Lock, Pages, Placed, Remap, Simulated, system};

/// Asserts that an implementation keeps the contract of [`Pages`].
fn keeps_the_contract(pages: &impl Pages) {
    let page = pages.page_size();
    assert!(page.is_power_of_two());
    for alignment in [page, 16 * page, 256 * page] {
        let size = 8 * page;
        let start = pages
            .reserve(size, alignment, Access::ReadWrite)
            .expect("there is room");
        assert!(start.addr().get().is_multiple_of(alignment));
        // SAFETY: the range was just reserved, and only this test uses it. No slice is used after
        // the first write. After each call that moves memory, the test uses only ranges that are
        // still reserved.
        unsafe {
            let mut looked_at = bytes(start, size)
                .iter()
                .step_by(if cfg!(miri) { 509 } else { 1 });
            assert!(looked_at.all(|&byte| byte == 0));
            start.write_bytes(7, size);
            assert!(pages.purge(start.add(page), page));
            assert_eq!(start.add(page).read(), 0);
            assert_eq!(start.add(2 * page).read(), 7);
            // Old kernels refuse this call.
            if let Some(other) = pages.detach(start, size) {
                assert_eq!(start.add(2 * page).read(), 0);
                assert_eq!(other.add(2 * page).read(), 7);
                start.write_bytes(7, size);
                assert!(pages.release(other, size));
            }
            let moved = pages
                .remap(start, size, 2 * size, Remap::MayMove)
                .expect("there is room");
            assert_eq!(moved.add(size - 1).read(), 7);
            assert_eq!(moved.add(2 * size - 1).read(), 0);
            let target = pages
                .reserve(size, alignment, Access::None)
                .expect("there is room");
            let moved = pages.remap(moved, 2 * size, size, Remap::Onto(target));
            assert_eq!(moved, Some(target));
            assert_eq!(target.add(size - 1).read(), 7);
            assert!(pages.release(target, page));
            assert!(pages.release(target.add(page), size - page));
        }
    }
}

/// Returns the bytes of a range.
///
/// # Safety
///
/// The range is readable and does not change during the lifetime.
unsafe fn bytes<'a>(start: NonNull<u8>, size: usize) -> &'a [u8] {
    // SAFETY: the range is readable and does not change, by the contract of this function.
    unsafe { core::slice::from_raw_parts(start.as_ptr(), size) }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no mremap")]
fn linux_keeps_the_contract() {
    keeps_the_contract(&Linux);
}

#[test]
fn the_fake_keeps_the_contract_and_loses_nothing() {
    let fake = Simulated::new(1 << 24);
    keeps_the_contract(&fake);
    assert_eq!(fake.reserved(), 0);
    assert_eq!(fake.calls().reserve, 6);
}

#[test]
fn the_fake_refuses_beyond_its_limit() {
    let fake = Simulated::new(8192);
    assert!(fake.reserve(12288, 4096, Access::ReadWrite).is_none());
    let start = fake
        .reserve(8192, 4096, Access::ReadWrite)
        .expect("there is room");
    assert!(fake.reserve(4096, 4096, Access::ReadWrite).is_none());
    fake.set_limit(16384);
    assert!(fake.reserve(4096, 4096, Access::ReadWrite).is_some());
    // SAFETY: the range was reserved above and is unused.
    assert!(unsafe { fake.release(start, 8192) });
    assert_eq!(fake.reserved(), 4096);
}

#[test]
fn the_fake_finds_room_for_a_gibibyte_and_no_more() {
    const GIB: usize = 1 << 30;
    let fake = Simulated::new(8192);
    assert!(fake.find_room(GIB + 4096, 4096).is_none());
    let start = fake.find_room(1 << 20, 4096).expect("there is room");
    assert_eq!(fake.reserved(), 0, "room alone takes no addresses");
    let reserve = |bytes| fake.reserve_at(start, bytes, Access::ReadWrite);
    assert_eq!(reserve(8192), Placed::Done);
    assert_eq!((reserve(4096), fake.reserved()), (Placed::Refused, 8192));
}

#[test]
#[should_panic(expected = "the range was never reserved")]
fn the_fake_notices_a_second_release() {
    let fake = Simulated::new(1 << 20);
    let start = fake
        .reserve(4096, 4096, Access::ReadWrite)
        .expect("there is room");
    // SAFETY: the second call breaks the contract on purpose, and the simulated system panics
    // before it accesses the memory.
    unsafe {
        fake.release(start, 4096);
        fake.release(start, 4096);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri allows no such address space")]
fn refusals_leave_errno_alone() {
    // SAFETY: the address is that of the calling thread's own errno.
    unsafe { *libc::__errno_location() = 77 };
    assert!(Linux.reserve(1 << 60, 1 << 20, Access::ReadWrite).is_none());
    // SAFETY: the address is that of the calling thread's own errno.
    assert_eq!(unsafe { *libc::__errno_location() }, 77);
}

#[test]
fn a_lock_lets_one_thread_in_at_a_time() {
    const TURNS: usize = if cfg!(miri) { 50 } else { 20_000 };
    let counter = Lock::new(0_usize);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    let mut count = counter.lock();
                    let read = *count;
                    std::hint::black_box(&read);
                    *count = read + 1;
                }
            });
        }
    });
    assert_eq!(*counter.lock(), 4 * TURNS);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no environ of its own")]
fn the_environment_is_read_without_allocating() {
    let path = std::env::var("PATH").expect("tests have a PATH");
    // SAFETY: no test changes the environment.
    let (found, missing) = unsafe {
        (
            system::variable(c"PATH"),
            system::variable(c"HEAPDROME_HAS_NO_SUCH_VARIABLE"),
        )
    };
    assert_eq!(
        found.and_then(|value| value.to_str().ok()),
        Some(path.as_str())
    );
    assert!(missing.is_none());
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no signal masks")]
fn a_thread_of_the_allocator_runs() {
    static RAN: AtomicBool = AtomicBool::new(false);
    extern "C" fn body(_: *mut core::ffi::c_void) -> *mut core::ffi::c_void {
        RAN.store(true, SeqCst);
        core::ptr::null_mut()
    }
    assert!(system::start_thread(body));
    while !RAN.load(SeqCst) {
        std::thread::yield_now();
    }
}

#[test]
fn a_sleep_ends_with_its_time_or_with_an_event() {
    let events = EventCount::new();
    events.sleep(events.read(), 1);
    let seen = events.read();
    std::thread::scope(|scope| {
        scope.spawn(|| events.advance());
        // A sleep may return early, but the event ends the last sleep: the thread is woken, or
        // finds a different count.
        while events.read() == seen {
            events.sleep(seen, u64::MAX);
        }
    });
    events.sleep(seen, u64::MAX);
}

#[test]
fn threads_are_told_apart() {
    let mine = system::thread_pointer();
    assert_eq!(mine, system::thread_pointer());
    let other = std::thread::spawn(system::thread_pointer)
        .join()
        .expect("the thread ends well");
    assert_ne!(mine, other);
}

#[test]
fn words_of_randomness_differ() {
    let words: Vec<u64> = (0..8).map(|_| system::random_word()).collect();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
}

/// Number of signals handled.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);

/// Installs a handler so that `signal` interrupts the calling thread's system calls with `EINTR`.
fn be_interrupted_by(signal: libc::c_int) {
    extern "C" fn count(_: libc::c_int) {
        SIGNALS.fetch_add(1, SeqCst);
    }
    // SAFETY: all-zero memory means no flags and an empty mask. The handler only uses an atomic,
    // and is never unloaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        let mut mask: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&raw mut mask, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const mask, core::ptr::null_mut());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri delivers no signals")]
fn what_signals_interrupt_is_written_whole_and_once() {
    // More bytes than a pipe holds, so that writing blocks until the other end reads.
    let text: Vec<u8> = (0..1 << 20).map(|at: usize| (at % 251) as u8).collect();
    let (mut reader, writer) = std::io::pipe().expect("there are pipes");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let written = scope.spawn(|| {
            let writer = writer;
            be_interrupted_by(libc::SIGUSR1);
            // SAFETY: no precondition.
            let _ = tell.send(unsafe { libc::pthread_self() });
            system::write_all(writer.as_raw_fd(), &text)
        });
        let thread = told.recv().expect("the thread says who it is");
        for signals in 1..=50 {
            // SAFETY: the thread has not been joined.
            assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
            while SIGNALS.load(SeqCst) < signals && !written.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("the pipe can be read");
        assert!(
            written.join().expect("the thread ends well"),
            "not all was written"
        );
        assert!(read == text, "{} bytes of {}", read.len(), text.len());
    });
}
