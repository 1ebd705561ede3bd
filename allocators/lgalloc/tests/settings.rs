//! Settings and their effects. Each test runs in its own process.

#[path = "support/memory.rs"]
mod memory;
mod support;

use std::time::{Duration, Instant};

use heapdrome_lgalloc::{Config, UNIT, allocate, configure, deallocate, stats};
use memory::{burst, resident};
use support::alone;

#[test]
fn a_lowered_cap_empties_caches_too() {
    if alone("a_lowered_cap_empties_caches_too") {
        lower_the_cap();
    }
}

/// Without membarrier, a thief cannot make an owner use atomic exchanges, so owners must use them
/// from the start.
#[test]
fn a_lowered_cap_empties_caches_also_where_membarrier_is_forbidden() {
    let name = "a_lowered_cap_empties_caches_also_where_membarrier_is_forbidden";
    if alone(name) && forbid_membarrier() {
        lower_the_cap();
    }
}

/// Forbids membarrier to this thread and to threads that it starts later. Returns false if the
/// system does not support seccomp filters.
fn forbid_membarrier() -> bool {
    let statement = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let mut statements = [
        // The first word of the filter's input is the number of the system call.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            libc::SYS_membarrier as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, refusal),
        statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: statements.len() as u16,
        filter: statements.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until the call returns. The filter allows
    // all system calls except membarrier.
    let forbidden = unsafe {
        let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
        let filter = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, unused, unused, unused) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, filter, &raw const program) == 0
    };
    if !forbidden {
        return false;
    }
    // SAFETY: the call takes only numbers, and accesses no memory of the process.
    let asked = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0) };
    assert_eq!(asked, -1, "membarrier is refused");
    true
}

fn lower_the_cap() {
    let before = resident();
    let (send, receive) = std::sync::mpsc::channel();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let idle = std::thread::spawn(move || {
        burst(32);
        send.send(()).expect("the test waits");
        // The thread stays alive and idle, with a full cache.
        let _ = wait.recv();
    });
    receive.recv().expect("the thread lives");
    burst(32);
    assert!(stats().dirty_bytes >= 32 << 20, "{:?}", stats().dirty_bytes);
    configure(&Config {
        dirty_cap: 4 << 20,
        ..Config::default()
    });
    let (after, dirty) = (resident().saturating_sub(before), stats().dirty_bytes);
    assert!(dirty <= 4 << 20, "{dirty} bytes dirty");
    assert!(after <= 16 << 20, "{after} bytes resident");
    drop(done);
    idle.join().expect("no thread fails");
}

/// Returns the total size in bytes of free regions in caches.
fn cached() -> usize {
    let classes = stats().classes;
    classes
        .iter()
        .map(|class| class.bytes * class.cached_regions)
        .sum()
}

#[test]
fn a_lowered_budget_holds_for_what_is_cached_already() {
    if !alone("a_lowered_budget_holds_for_what_is_cached_already") {
        return;
    }
    let (send, receive) = std::sync::mpsc::channel();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let idle = std::thread::spawn(move || {
        burst(32);
        send.send(()).expect("the test waits");
        // The thread stays alive and idle, and then frees the same amount again.
        let _ = wait.recv();
        burst(32);
        send.send(()).expect("the test waits");
        let _ = wait.recv();
    });
    receive.recv().expect("the thread lives");
    let (before, dirty) = (cached(), stats().dirty_bytes);
    assert_eq!(before, 32 << 20);
    configure(&Config {
        thread_budget: 4 << 20,
        ..Config::default()
    });
    assert_eq!(cached(), 0, "the thread keeps what it may no longer keep");
    let kept = stats();
    assert_eq!(kept.classes[0].dirty_regions, 16, "the pool has them, warm");
    assert_eq!((kept.dirty_bytes, kept.purged_bytes), (dirty, 0));
    done.send(()).expect("the thread waits");
    receive.recv().expect("the thread lives");
    assert!(cached() <= 4 << 20, "{} bytes cached", cached());
    drop(done);
    idle.join().expect("no thread fails");
}

/// An old region in a cache is exchanged for a region in the pool that was freed later.
#[test]
fn of_two_regions_the_one_that_was_freed_later_is_handed_out() {
    if !alone("of_two_regions_the_one_that_was_freed_later_is_handed_out") {
        return;
    }
    configure(&Config {
        stale_after: Duration::from_millis(1),
        ..Config::default()
    });
    let take = || allocate::<u8>(UNIT).expect("memory");
    let older = take();
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let (ready, begun) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        let younger = take();
        ready.send(()).expect("the test waits");
        receive.recv().expect("the test goes on");
        // When the thread ends, the regions in its cache go to the pool.
        let start = younger.0.as_ptr().addr();
        deallocate(younger.2);
        start
    });
    begun.recv().expect("the thread lives");
    let cold = older.0.as_ptr().addr();
    deallocate(older.2);
    // Sleep for more than two steps of a region's stored age.
    std::thread::sleep(Duration::from_millis(60));
    send.send(()).expect("the thread waits");
    let warm = other.join().expect("no thread fails");
    assert_eq!(stats().classes[0].cached_regions, 1);
    let (first, second) = (take(), take());
    let given = [&first, &second].map(|taken| taken.0.as_ptr().addr());
    assert_eq!(given, [warm, cold]);
    deallocate(first.2);
    deallocate(second.2);
}

/// Returns the masks of blocked signals of the threads with this name, from `/proc`.
fn blocked_in(name: &str) -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    let masks = tasks.filter_map(|task| {
        let folder = task.ok()?.path();
        let named = std::fs::read_to_string(folder.join("comm")).ok()?;
        if named.trim() != name {
            return None;
        }
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(mask?.trim(), 16).ok()
    });
    masks.collect()
}

#[test]
fn the_worker_takes_none_of_the_programs_signals() {
    if !alone("the_worker_takes_none_of_the_programs_signals") {
        return;
    }
    let own = || {
        // SAFETY: all zeros is a valid signal set, and the call fills this local variable. A null
        // pointer for the new set is allowed.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
            (1..=64)
                .filter(|signal| libc::sigismember(&raw const set, *signal) == 1)
                .collect::<Vec<_>>()
        }
    };
    let before = own();
    configure(&Config {
        worker_interval: Some(Duration::from_secs(3600)),
        ..Config::default()
    });
    assert_eq!(own(), before, "the caller's signals are as they were");
    let until = Instant::now() + Duration::from_secs(60);
    let masks = loop {
        let masks = blocked_in("lgalloc");
        if !masks.is_empty() || Instant::now() > until {
            break masks;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // All signals except those that cannot be blocked, and two that the C library reserves for
    // itself.
    let kept = [libc::SIGKILL, libc::SIGSTOP, 32, 33];
    let all = kept
        .iter()
        .fold(u64::MAX, |all, signal| all & !(1 << (signal - 1)));
    assert_eq!(masks.len(), 1);
    assert_eq!(masks[0] & all, all);
}
