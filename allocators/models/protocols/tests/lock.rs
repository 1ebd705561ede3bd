//! The futex lock of `pages`: only one holder at a time, no lost wakeups, and forks.

use heapdrome_models::{Watched, join, model, spawn};
use heapdrome_pages::Lock;
use std::sync::Arc;

fn turns(threads: usize, each: usize, preemptions: usize) {
    model(preemptions, move || {
        let lock = Arc::new(Lock::new(Watched::default()));
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                let lock = lock.clone();
                spawn(move || {
                    for _ in 0..each {
                        lock.lock().touch();
                    }
                })
            })
            .collect();
        for handle in handles {
            join(handle);
        }
        assert_eq!(lock.lock().touch(), threads * each);
    });
}

#[test]
fn two_threads_take_turns_and_none_sleeps_for_ever() {
    turns(2, 2, 3);
}

#[test]
fn three_threads_take_turns_and_none_sleeps_for_ever() {
    turns(3, 1, 2);
}

#[test]
#[ignore = "minutes: see docs/testing.md"]
fn three_threads_take_several_turns() {
    turns(3, 2, 3);
}

#[test]
fn a_refused_attempt_and_a_holder_do_not_meet() {
    model(3, || {
        let lock = Arc::new(Lock::new(Watched::default()));
        let other = lock.clone();
        let handle = spawn(move || {
            if let Some(value) = other.try_lock() {
                value.touch();
            }
        });
        lock.lock().touch();
        join(handle);
        lock.lock().touch();
    });
}

#[test]
fn the_forking_thread_passes_and_the_other_waits() {
    model(3, || {
        let lock = Arc::new(Lock::new(Watched::default()));
        let other = lock.clone();
        let handle = spawn(move || {
            other.lock().touch();
        });
        lock.hold_for_fork();
        lock.lock().touch();
        // SAFETY: this thread took the lock for the fork, and no guard is alive.
        unsafe { lock.release_after_fork() };
        join(handle);
        assert_eq!(lock.lock().touch(), 2);
    });
}

#[test]
fn the_forking_thread_takes_turns_at_a_lock_of_another_allocator() {
    model(3, || {
        let locks = Arc::new([(); 2].map(|()| Lock::new(Watched::default())));
        let other = locks.clone();
        let handle = spawn(move || {
            other[1].lock().touch();
        });
        locks[0].hold_for_fork();
        locks[0].lock().touch();
        locks[1].lock().touch();
        // SAFETY: this thread took the lock for the fork, and no guard is alive.
        unsafe { locks[0].release_after_fork() };
        join(handle);
        assert_eq!(locks[1].lock().touch(), 2);
    });
}
