//! What concerns the whole process: settings, limits, forks, ends of threads. Each test runs in a
//! process of its own: this program starts itself again.

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use heapdrome_lgalloc::{
    AllocError, Config, PrefetchError, UNIT, allocate, configure, deallocate, empty_everything,
    stats,
};

const VARIABLE: &str = "LGALLOC_TEST_ALONE";

/// Runs the body in a fresh process; true in that process.
fn alone(test: &str) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let status: ExitStatus = Command::new(program)
        .args(["--exact", test, "--test-threads=1"])
        .env(VARIABLE, "1")
        .status()
        .expect("this program starts");
    assert!(status.success(), "{test}: {status}");
    false
}

fn touch(start: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(4096) {
        // SAFETY: callers own the region.
        unsafe { start.add(at).write(at as u8) };
    }
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse::<usize>().ok());
    pages.expect("a number of pages") * 4096
}

fn burst(megabytes: usize) {
    let regions: Vec<_> = (0..megabytes / 2)
        .map(|_| allocate::<u8>(UNIT).expect("memory"))
        .collect();
    for (start, capacity, _) in &regions {
        touch(start.as_ptr(), *capacity);
    }
    regions
        .into_iter()
        .for_each(|(_, _, handle)| deallocate(handle));
}

#[test]
fn after_a_burst_dirty_memory_is_below_its_cap() {
    if !alone("after_a_burst_dirty_memory_is_below_its_cap") {
        return;
    }
    let before = resident();
    configure(&Config {
        dirty_cap: 24 << 20,
        thread_budget: 8 << 20,
        ..Config::default()
    });
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| burst(64))).collect();
    burst(64);
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    let (after, dirty) = (resident().saturating_sub(before), stats().dirty_bytes);
    assert!(dirty <= 24 << 20, "{dirty} bytes dirty");
    assert!(after <= (24 << 20) + (16 << 20), "{after} bytes resident");
    // At least one burst's excess: bursts that follow one another use the same memory.
    let purged = stats().purged_bytes;
    assert!(purged >= (64 - 24) << 20, "{purged} bytes purged");
    empty_everything();
    let left = resident().saturating_sub(before);
    assert!(
        left <= 16 << 20,
        "{left} bytes resident after everything was returned"
    );
}

#[test]
fn memory_moves_between_classes() {
    if !alone("memory_moves_between_classes") {
        return;
    }
    burst(512);
    empty_everything();
    let large = allocate::<u8>(512 << 20).expect("memory");
    assert_eq!(
        stats().reserved_bytes,
        1 << 30,
        "small regions did not join to a large one"
    );
    deallocate(large.2);
}

fn limit_address_space(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the limit is a local variable.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(result, 0);
}

#[test]
fn a_refused_area_is_tried_again_smaller() {
    if !alone("a_refused_area_is_tried_again_smaller") {
        return;
    }
    limit_address_space(700 << 20);
    let refused = allocate::<u8>(64 << 30).err();
    assert_eq!(refused, Some(AllocError::OutOfMemory { bytes: 64 << 30 }));
    let mut regions = Vec::new();
    while let Ok((start, capacity, handle)) = allocate::<u8>(4 << 20) {
        touch(start.as_ptr(), capacity);
        regions.push(handle);
        assert!(regions.len() < 1000);
    }
    assert!(
        regions.len() * 4 > 256,
        "only {} regions of 4 MiB in 700 MiB",
        regions.len()
    );
    let count = regions.len();
    regions.into_iter().for_each(deallocate);
    // What was free in one class serves another, although the limit has no room left.
    let all: Vec<_> = (0..count).map(|_| allocate::<u8>(UNIT)).collect();
    assert!(
        all.iter().all(Result::is_ok),
        "free memory of one class is lost to another"
    );
}

fn wait_for(child: libc::pid_t) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut status = 0;
        // SAFETY: the status is a local variable, the child our own.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return status;
        }
        if Instant::now() > deadline {
            // SAFETY: the child is our own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_busy_program_forks() {
    if !alone("a_busy_program_forks") {
        return;
    }
    // Small caches and a small cap: the pool's lock is busy.
    configure(&Config {
        dirty_cap: 8 << 20,
        thread_budget: 2 << 20,
        ..Config::default()
    });
    let until = Instant::now() + Duration::from_secs(2);
    let busy = move || {
        while Instant::now() < until {
            let all: Vec<_> = (0..6).filter_map(|_| allocate::<u8>(UNIT).ok()).collect();
            all.into_iter()
                .for_each(|(_, _, handle)| deallocate(handle));
        }
    };
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(busy)).collect();
    let mut forks = 0;
    while Instant::now() < until && forks < 100 {
        // SAFETY: the child uses this allocator and the kernel only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            for _ in 0..20 {
                let Ok((start, _, handle)) = allocate::<u8>(8 << 20) else {
                    // SAFETY: it ends the process.
                    unsafe { libc::_exit(1) };
                };
                touch(start.as_ptr(), UNIT);
                deallocate(handle);
            }
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        assert_eq!(wait_for(child), 0, "a child of the fork failed or hung");
        forks += 1;
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no thread fails"));
    assert!(forks > 0);
}

struct Late(Option<heapdrome_lgalloc::Handle>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(deallocate);
        let (start, _, handle) = allocate::<u8>(1).expect("memory past the end of a thread");
        touch(start.as_ptr(), 4096);
        deallocate(handle);
    }
}

#[test]
fn threads_past_their_end_are_served() {
    if !alone("threads_past_their_end_are_served") {
        return;
    }
    thread_local! {
        static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(None)) };
    }
    // Set before and after the allocator's own thread-locals: destructors run in either order.
    for early in [true, false] {
        let thread = std::thread::spawn(move || {
            if early {
                LATE.with_borrow_mut(|_| ());
            }
            let handle = allocate::<u8>(1).expect("memory").2;
            LATE.with_borrow_mut(|late| late.0 = Some(handle));
        });
        thread.join().expect("no thread fails");
    }
    assert!(stats().classes[0].clean_regions + stats().classes[0].dirty_regions > 0);
}

#[test]
fn the_worker_returns_memory_also_after_a_fork() {
    if !alone("the_worker_returns_memory_also_after_a_fork") {
        return;
    }
    let interval = Some(Duration::from_millis(20));
    configure(&Config {
        thread_budget: 0,
        worker_interval: interval,
        ..Config::default()
    });
    let idle = || {
        burst(32);
        let until = Instant::now() + Duration::from_secs(20);
        while stats().dirty_bytes > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        stats().dirty_bytes == 0
    };
    assert!(idle());
    // SAFETY: the child uses this allocator, a thread and the kernel.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends the process.
        unsafe { libc::_exit(i32::from(!idle())) };
    }
    assert_eq!(wait_for(child), 0, "no worker in the child");
}

#[test]
fn prefetching_reports_what_the_system_says() {
    if !alone("prefetching_reports_what_the_system_says") {
        return;
    }
    let (_, capacity, handle) = allocate::<u8>(1).expect("memory");
    assert_eq!(handle.prefetch_hint::<u8>(1..2), Ok(()));
    assert_eq!(handle.prefetch_hint::<u8>(4095..4097), Ok(()));
    assert_eq!(handle.prefetch_hint::<u8>(capacity - 1..capacity), Ok(()));
    assert_eq!(handle.prefetch_hint::<u64>(3..3), Ok(()));
    let outside = Err(PrefetchError::OutOfBounds { length: capacity });
    assert_eq!(handle.prefetch_hint::<u8>(0..capacity + 1), outside);
    assert_eq!(handle.prefetch_hint::<u64>(0..usize::MAX), outside);
    #[expect(clippy::reversed_empty_ranges, reason = "that is the case under test")]
    let reversed = handle.prefetch_hint::<u8>(5..4);
    assert_eq!(reversed, outside);
    // SAFETY: the region is ours, and nobody touches it once it is gone.
    let gone = unsafe { libc::munmap(handle.start().as_ptr().cast(), capacity) };
    assert_eq!(gone, 0);
    assert_eq!(
        handle.prefetch_hint::<u8>(5..10),
        Err(PrefetchError::Refused(libc::ENOMEM))
    );
}

#[test]
fn a_stale_region_with_absent_pages_is_dropped_and_a_warm_one_kept() {
    if !alone("a_stale_region_with_absent_pages_is_dropped_and_a_warm_one_kept") {
        return;
    }
    let stale_after = Duration::from_millis(1);
    configure(&Config {
        stale_after,
        huge_pages: false,
        ..Config::default()
    });
    let mut dropped = Vec::new();
    for touched in [UNIT, UNIT / 2] {
        empty_everything();
        let (start, _, handle) = allocate::<u8>(UNIT).expect("memory");
        touch(start.as_ptr(), touched);
        deallocate(handle);
        std::thread::sleep(Duration::from_millis(60));
        deallocate(allocate::<u8>(UNIT).expect("memory").2);
        dropped.push(stats().stale_dropped);
    }
    assert_eq!(dropped, [0, 1]);
}
