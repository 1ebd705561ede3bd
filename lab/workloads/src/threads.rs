//! Threads that start together, end together, and fail together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use crate::Failure;
use heapdrome_system::process::{Elapsed, Memory, Moment};

/// Reason why a thread ends its work early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The thread found a failure.
    Failed(Failure),
    /// Another thread failed.
    Stopped,
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// State that the threads of one run share.
#[derive(Debug)]
pub(crate) struct Team {
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// Gate at which all threads meet the thread that started them.
    starter: Gate,
    /// Gate at which the threads meet each other.
    meeting: Gate,
}

/// Gate that opens when all members have arrived, or when the team is stopped.
#[derive(Debug)]
struct Gate {
    expected: usize,
    /// Number of waiting threads, and number of times that the gate has opened.
    state: Mutex<(usize, u64)>,
    opened: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    fn new(expected: usize) -> Self {
        let (state, opened) = (Mutex::new((0, 0)), Condvar::new());
        Self {
            expected,
            state,
            opened,
        }
    }

    fn wait(&self, stopped: &AtomicBool) -> Result<(), Halt> {
        let mut state = locked(&self.state);
        state.0 += 1;
        let turn = state.1;
        if state.0 == self.expected {
            *state = (0, turn + 1);
            self.opened.notify_all();
            return Ok(());
        }
        // Relaxed: `stop` sets the flag before it takes this lock to wake the waiting threads.
        while state.1 == turn && !stopped.load(Ordering::Relaxed) {
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        match state.1 == turn {
            true => Err(Halt::Stopped),
            false => Ok(()),
        }
    }

    fn wake(&self) {
        drop(locked(&self.state));
        self.opened.notify_all();
    }
}

impl Team {
    fn new(threads: usize) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            starter: Gate::new(threads + 1),
            meeting: Gate::new(threads),
        }
    }

    /// Waits until all threads of the team have arrived.
    ///
    /// # Errors
    /// Returns [`Halt::Stopped`] if one of them failed.
    pub(crate) fn meet(&self) -> Result<(), Halt> {
        self.meeting.wait(&self.stopped)
    }

    /// Checks whether the work continues. Call it regularly, at least before waiting for another
    /// thread.
    ///
    /// # Errors
    /// Returns [`Halt::Stopped`] if another thread has failed.
    #[inline]
    pub(crate) fn go_on(&self) -> Result<(), Halt> {
        // Relaxed: it does not matter whether a thread sees the flag now or at a later call.
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Halt::Stopped),
            false => Ok(()),
        }
    }

    /// Ends the work of all threads; only the first failure is reported.
    fn stop(&self, failure: Option<Failure>) {
        let mut first = locked(&self.failure);
        *first = first.take().or(failure);
        drop(first);
        // Relaxed: a waiting thread reads the flag under the gate's lock, which `wake` takes after
        // this store.
        self.stopped.store(true, Ordering::Relaxed);
        self.starter.wake();
        self.meeting.wake();
    }
}

/// Guard that stops the team when its thread panics, so that no other thread waits for the panicked
/// one.
struct StopOnPanic<'a>(&'a Team);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(None);
        }
    }
}

/// Results of the threads of a run, and its measurements.
#[derive(Debug)]
pub(crate) struct Finished<R> {
    /// The threads' results, in the order of their numbers.
    pub(crate) results: Vec<R>,
    /// Time from the moment when all threads were ready until the last thread had ended its work.
    pub(crate) elapsed: Elapsed,
    /// Memory when all threads were ready.
    pub(crate) before: Memory,
    /// Memory when the last thread had ended its work, with all threads still alive.
    pub(crate) after: Memory,
}

impl<R> Finished<R> {
    /// Applies `convert` to the result of each thread.
    pub(crate) fn map<S>(self, convert: impl FnMut(R) -> S) -> Finished<S> {
        Finished {
            results: self.results.into_iter().map(convert).collect(),
            elapsed: self.elapsed,
            before: self.before,
            after: self.after,
        }
    }
}

/// Runs `work` on `threads` threads in parallel.
///
/// Each thread calls `prepare` with its number. When all are ready, the clock starts and each calls
/// `work`. When all have done their work, the clock stops and each calls `finish`. Starting
/// threads, `prepare`, `finish` and ending threads are not measured.
///
/// # Errors
/// Returns the first failure of any thread; the others stop at their next call to [`Team::go_on`]
/// or [`Team::meet`].
///
/// # Panics
/// If a thread panics: its panic continues on the calling thread.
pub(crate) fn run<T, R: Send>(
    threads: usize,
    prepare: impl Fn(usize) -> Result<T, Failure> + Sync,
    work: impl Fn(usize, &mut T, &Team) -> Result<(), Halt> + Sync,
    finish: impl Fn(T) -> R + Sync,
) -> Result<Finished<R>, Failure> {
    let team = Team::new(threads);
    let (shared, prepare, work, finish) = (&team, &prepare, &work, &finish);
    let life = move |number| -> Result<R, Halt> {
        let _guard = StopOnPanic(shared);
        let whole = || {
            let mut own = prepare(number)?;
            shared.starter.wait(&shared.stopped)?;
            shared.starter.wait(&shared.stopped)?;
            work(number, &mut own, shared)?;
            shared.starter.wait(&shared.stopped)?;
            shared.starter.wait(&shared.stopped)?;
            Ok(finish(own))
        };
        whole().inspect_err(|halt| match halt {
            Halt::Failed(failure) => shared.stop(Some(failure.clone())),
            Halt::Stopped => {}
        })
    };
    let done = std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(threads);
        for number in 0..threads {
            match Builder::new().spawn_scoped(scope, move || life(number)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    team.stop(Some(Failure::Thread(error.to_string())));
                    break;
                }
            }
        }
        let measured = measure(&team);
        let ends: Vec<_> = handles.into_iter().map(join).collect();
        let results: Result<Vec<R>, Halt> = ends.into_iter().collect();
        measured.and_then(|measured| Ok((results?, measured)))
    });
    conclude(&team, done)
}

/// Returns the result of a thread. If the thread panicked, continues its panic on this thread.
fn join<R>(handle: ScopedJoinHandle<'_, Result<R, Halt>>) -> Result<R, Halt> {
    let ended = handle.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Memory before the threads' work, its duration, and memory after it.
type Measured = (Memory, Elapsed, Memory);

/// Returns all results, or the first failure.
fn conclude<R>(
    team: &Team,
    done: Result<(Vec<R>, Measured), Halt>,
) -> Result<Finished<R>, Failure> {
    let failure = locked(&team.failure).take();
    match (failure, done) {
        (None, Ok((results, (before, elapsed, after)))) => Ok(Finished {
            results,
            elapsed,
            before,
            after,
        }),
        (Some(failure), _) | (None, Err(Halt::Failed(failure))) => Err(failure),
        (None, Err(Halt::Stopped)) => Err(Failure::Thread("it was stopped".to_owned())),
    }
}

/// Measures the work of all threads, on the thread that started them.
fn measure(team: &Team) -> Result<Measured, Halt> {
    team.starter.wait(&team.stopped)?;
    let before = Memory::read();
    let begin = Moment::now();
    team.starter.wait(&team.stopped)?;
    team.starter.wait(&team.stopped)?;
    let elapsed = begin.elapsed();
    let after = Memory::read();
    team.starter.wait(&team.stopped)?;
    Ok((before, elapsed, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn nobody_works_before_all_are_ready() {
        let ready = AtomicUsize::new(0);
        let finished = run(
            4,
            |number| {
                // The threads become ready one after the other.
                while ready.load(Ordering::SeqCst) < number {
                    std::thread::yield_now();
                }
                ready.fetch_add(1, Ordering::SeqCst);
                Ok(number)
            },
            |_, _, team| {
                assert_eq!(ready.load(Ordering::SeqCst), 4);
                team.meet()?;
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            },
            |number| number * 10,
        );
        let finished = finished.unwrap();
        assert_eq!(finished.results, [0, 10, 20, 30]);
        assert!(finished.elapsed.wall >= Duration::from_millis(20));
        assert!(finished.after.peak_resident > 0 && finished.before.resident > 0);
    }

    #[test]
    fn one_failure_ends_all_that_wait() {
        let failure = Failure::NoMemory {
            size: 1,
            requested: 2,
        };
        let finished = run(
            3,
            |_| Ok(()),
            |number, (), team| match number {
                1 => Err(failure.clone().into()),
                _ => team.meet(),
            },
            |()| (),
        );
        assert_eq!(finished.map(|_| ()), Err(failure));
    }

    #[test]
    fn a_failure_before_the_start_ends_all() {
        let failure = Failure::Bookkeeping { bytes: 5 };
        let prepare = |number| match number {
            2 => Err(failure.clone()),
            _ => Ok(()),
        };
        let finished = run(3, prepare, |_, (), _| Ok(()), |()| ());
        assert_eq!(finished.map(|_| ()), Err(failure));
    }

    #[test]
    fn one_failure_ends_those_that_only_ask() {
        let finished = run(
            2,
            |_| Ok(()),
            |number, (), team| match number {
                0 => Err(Failure::Bookkeeping { bytes: 5 }.into()),
                _ => loop {
                    team.go_on()?;
                    std::thread::yield_now();
                },
            },
            |()| (),
        );
        assert!(finished.is_err());
    }

    #[test]
    #[should_panic(expected = "explicit panic")]
    fn a_panic_leaves_nobody_waiting() {
        let work = |number, (): &mut (), team: &Team| match number {
            0 => panic!(),
            _ => team.meet(),
        };
        let _ = run(2, |_| Ok(()), work, |()| ());
    }
}
