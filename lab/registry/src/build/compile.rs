//! Parallel compilation of many files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use heapdrome_packages::{ChildError, Job};

/// One file to compile.
pub(super) struct Unit {
    pub(super) compiler: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) file: String,
    pub(super) object: PathBuf,
}

impl Unit {
    fn run(&self, folder: &Path, log: &Path, interrupt: &AtomicBool) -> Result<(), ChildError> {
        let mut job = Job::new(self.compiler, log);
        let command = job.command();
        command
            .current_dir(folder)
            .args(&self.arguments)
            .arg("-c")
            .arg(&self.file);
        command.arg("-o").arg(&self.object);
        job.run(interrupt)
    }
}

/// Returns the number of processes that a build may use.
pub(super) fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Compiles every unit, and calls `tell` when the compilation of a unit begins. Stops at the first
/// failure.
pub(super) fn run(
    units: &[Unit],
    folder: &Path,
    log: &Path,
    interrupt: &AtomicBool,
    tell: &mut dyn FnMut(String),
) -> Result<(), ChildError> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let worker = |begun: mpsc::Sender<String>| -> Result<(), ChildError> {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Sending fails only if the receiver is gone. Then the message is not needed.
            let _ = begun.send(format!("compiling {}", short_name(&unit.file)));
            let result = unit.run(folder, log, interrupt);
            if result.is_err() {
                // Every other worker stops after its current unit, because it finds no units left.
                next.store(units.len(), Ordering::Relaxed);
                return result;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let spawn = |_| {
            let sender = sender.clone();
            scope.spawn(move || worker(sender))
        };
        let workers: Vec<_> = (0..jobs().min(units.len())).map(spawn).collect();
        drop(sender);
        receiver.iter().for_each(tell);
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

fn short_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
