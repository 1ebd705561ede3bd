//! The background thread, if one is wanted.

use core::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::Duration;

use crate::{config, pool};

static RUNNING: AtomicBool = AtomicBool::new(false);

/// In the child of a fork there is no worker; the next thread that comes by starts one.
pub fn forget() {
    // Release: pairs with the swap in `start_if_wanted`.
    RUNNING.store(false, Release);
}

/// Starts the worker if the settings ask for one and none runs.
pub fn start_if_wanted() {
    // Relaxed: a thread that sees an old value starts it the next time.
    if config::worker_interval_ms() == 0 || RUNNING.load(Relaxed) {
        return;
    }
    // AcqRel: one thread alone sees false; pairs with `forget`.
    if RUNNING.swap(true, AcqRel) {
        return;
    }
    let started = std::thread::Builder::new()
        .name("lgalloc".into())
        .spawn(run);
    if started.is_err() {
        forget();
    }
}

fn run() {
    loop {
        let interval = config::worker_interval_ms();
        if interval == 0 {
            return forget();
        }
        std::thread::sleep(Duration::from_millis(interval));
        pool::purge_older(interval);
    }
}
