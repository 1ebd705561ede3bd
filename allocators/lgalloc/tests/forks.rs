//! Forks of a multithreaded process. Each test runs in its own process: this program starts itself
//! again.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use heapdrome_lgalloc::{
    Config, Handle, Stats, UNIT, allocate, configure, deallocate, empty_everything, stats,
};
use support::{alone, touch};

/// Runs `act` in the child of a fork, and returns the result of `act`. Returns 1000 times the
/// number of the signal if a signal killed the child, and -1 if the fork fails.
fn in_a_child(act: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child uses only this allocator, the kernel, threads, and the C library's malloc.
    // All of these work in the child of a fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = act();
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(status.into()) };
    }
    if child < 0 {
        return -1;
    }
    let status = wait_for(child);
    // `wait_for` kills a child that hangs, so the termination signal is part of the result.
    libc::WEXITSTATUS(status) + 1000 * libc::WTERMSIG(status)
}

fn wait_for(child: libc::pid_t) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let mut status = 0;
        // SAFETY: the status is a local variable.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return status;
        }
        if Instant::now() > deadline {
            // SAFETY: the number belongs to a child of this process, which has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn take(regions: usize) -> Vec<Handle> {
    let take = |_| allocate::<u8>(UNIT).expect("memory").2;
    (0..regions).map(take).collect()
}

/// Runs `act` while the caches of `threads` other threads hold five regions each, and this thread's
/// cache holds three.
fn beside_full_caches<T>(threads: usize, act: impl FnOnce() -> T) -> T {
    let all = Barrier::new(threads + 1);
    let fill = |regions| {
        let taken = take(regions);
        // Wait, so that no thread takes a region that another thread has already returned.
        all.wait();
        taken.into_iter().for_each(deallocate);
        all.wait();
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                fill(5);
                all.wait();
            });
        }
        fill(3);
        let result = act();
        all.wait();
        result
    })
}

/// Returns the total size in bytes of free regions with contents, in caches and in the table.
fn free_bytes(stats: &Stats) -> usize {
    let classes = stats.classes.iter();
    let regions = classes.map(|class| class.bytes * (class.cached_regions + class.dirty_regions));
    regions.sum()
}

/// Empties all caches and the table. Returns whether the statistics then count nothing.
fn counts_nothing_when_empty() -> bool {
    empty_everything();
    let empty = stats();
    (free_bytes(&empty), empty.dirty_bytes) == (0, 0)
}

#[test]
fn the_caches_of_lost_threads_serve_the_child() {
    if !alone("the_caches_of_lost_threads_serve_the_child") {
        return;
    }
    configure(&Config {
        dirty_cap: 32 * UNIT,
        thread_budget: 8 * UNIT,
        ..Config::default()
    });
    let status = beside_full_caches(3, || in_a_child(use_up_caches));
    assert_eq!(status, 0, "this step of the child was not as it should be");
}

/// Allocates all regions that lie in caches and two more, and frees them. Returns the number of the
/// failed step, or zero.
fn use_up_caches() -> u8 {
    let before = stats();
    // This thread's three regions are counted only at its next free.
    if (free_bytes(&before), before.dirty_bytes) != (18 * UNIT, 15 * UNIT) {
        return 1;
    }
    let taken = [(); 20].map(|()| allocate::<u8>(UNIT).ok());
    let empty = stats();
    if (free_bytes(&empty), empty.dirty_bytes) != (0, 0) {
        return 2;
    }
    for (_, _, handle) in taken.into_iter().flatten() {
        deallocate(handle);
    }
    let after = stats();
    if free_bytes(&after) != 20 * UNIT || after.purged_bytes != before.purged_bytes {
        return 3;
    }
    // This thread's cache may have borrowed more bytes than it holds.
    if !(20 * UNIT..=28 * UNIT).contains(&after.dirty_bytes) {
        return 4;
    }
    if counts_nothing_when_empty() { 0 } else { 5 }
}

/// Cap for the forks of busy threads. Small, so that leases are often refused and revoked.
const CAP: usize = 8 * UNIT;
const BUDGET: usize = 2 * UNIT;

/// Forks in a thread without a cache, while three threads allocate and free regions and another
/// thread empties all caches.
#[test]
fn what_is_counted_after_a_fork_is_what_is_there() {
    if !alone("what_is_counted_after_a_fork_is_what_is_there") {
        return;
    }
    configure(&Config {
        dirty_cap: CAP,
        thread_budget: BUDGET,
        ..Config::default()
    });
    let (begun, done) = (Barrier::new(5), AtomicBool::new(false));
    let busy = |act: fn()| {
        act();
        begun.wait();
        while !done.load(Relaxed) {
            act();
        }
    };
    let until = Instant::now() + Duration::from_secs(2);
    let failed = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| busy(|| take(3).into_iter().for_each(deallocate)));
        }
        scope.spawn(|| busy(empty_everything));
        begun.wait();
        let forks = (0..200).take_while(|fork| *fork == 0 || Instant::now() < until);
        let failed = forks
            .map(|_| in_a_child(take_stock))
            .find(|status| *status != 0);
        done.store(true, Relaxed);
        failed
    });
    assert_eq!(failed, None, "this step of a child was not as it should be");
}

/// Compares the counts with the free regions. Returns the number of the failed step, or zero.
fn take_stock() -> u8 {
    let begun = stats();
    if begun.dirty_bytes != free_bytes(&begun) {
        return 1;
    }
    recycle();
    let after = stats();
    // This thread's cache may have borrowed more bytes than it holds.
    if after.dirty_bytes.wrapping_sub(free_bytes(&after)) > BUDGET {
        return 2;
    }
    if !counts_nothing_when_empty() {
        return 3;
    }
    recycle();
    let after = stats();
    if (free_bytes(&after)..=CAP).contains(&after.dirty_bytes) {
        0
    } else {
        4
    }
}

/// Allocates and frees more regions at a time than fit into a cache.
fn recycle() {
    for _ in 0..20 {
        let taken = [(); 3].map(|()| allocate::<u8>(UNIT).ok());
        for (_, _, handle) in taken.into_iter().flatten() {
            deallocate(handle);
        }
    }
}

#[test]
fn a_busy_program_forks() {
    if !alone("a_busy_program_forks") {
        return;
    }
    // Small caches and a small cap keep the pool's lock busy.
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
        let status = in_a_child(|| {
            for _ in 0..20 {
                let Ok((start, _, handle)) = allocate::<u8>(8 << 20) else {
                    return 1;
                };
                touch(start.as_ptr(), UNIT);
                deallocate(handle);
            }
            0
        });
        assert_eq!(status, 0, "a child of the fork failed or hung");
        forks += 1;
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no thread fails"));
    assert!(forks > 0);
}

#[test]
fn the_worker_returns_memory_also_after_a_fork() {
    if !alone("the_worker_returns_memory_also_after_a_fork") {
        return;
    }
    configure(&Config {
        worker_interval: Some(Duration::from_millis(20)),
        ..Config::default()
    });
    // Only the worker takes regions out of an idle thread's cache, so zero dirty bytes show that it
    // runs.
    let idle = || {
        take(16).into_iter().for_each(deallocate);
        let until = Instant::now() + Duration::from_secs(60);
        while stats().dirty_bytes > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        stats().dirty_bytes == 0
    };
    assert!(idle());
    let status = beside_full_caches(2, || in_a_child(|| (!idle()).into()));
    assert_eq!(status, 0, "no worker in the child");
}
