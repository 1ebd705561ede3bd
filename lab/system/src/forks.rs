//! Forked child processes that do not call `exec`. A child is killed when its [`Forks`] is dropped,
//! when the thread that forked it ends, or after [`LONGEST`] seconds.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use heapdrome_schema::Ending;

/// Time in seconds after which the kernel kills a child, so that a deadlock ends.
const LONGEST: u32 = 120;

/// Exit status of a child that panicked, or whose parent ended before the child's [`limit_life`].
const PANICKED: u8 = 101;

/// Forked children that have not been collected. Dropping the list kills and collects them.
#[derive(Debug)]
pub struct Forks {
    alive: VecDeque<libc::pid_t>,
}

impl Forks {
    /// Creates an empty list. While it holds at most `most` children, it does not allocate again.
    pub fn new(most: usize) -> Self {
        Self {
            alive: VecDeque::with_capacity(most),
        }
    }

    /// Returns the number of children that have not been collected.
    pub fn count(&self) -> usize {
        self.alive.len()
    }

    /// Forks a child, which calls `life` and ends by `_exit` with the status that `life` returns,
    /// or with [`PANICKED`]. The kernel kills the child when the calling thread ends, or after
    /// [`LONGEST`] seconds.
    ///
    /// # Errors
    /// When the kernel refuses another process.
    ///
    /// # Safety
    /// `life` takes no lock that another thread of this process may hold, except those of the
    /// allocator.
    pub unsafe fn fork(&mut self, life: impl FnOnce() -> u8) -> io::Result<()> {
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child runs only `live`, which makes system calls and calls `life`. By this
        // function's contract, `life` takes no lock that another thread may hold, except those of
        // the allocator. An allocator must reset or hold its own locks at a fork.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => live(parent, life),
            child => {
                self.alive.push_back(child);
                Ok(())
            }
        }
    }

    /// Waits until the oldest child ends, and returns its ending; `None` if there is no child.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn collect_oldest(&mut self) -> io::Result<Option<Ending>> {
        let Some(child) = self.alive.front().copied() else {
            return Ok(None);
        };
        let status = wait(child)?;
        self.alive.pop_front();
        Ok(Some(match libc::WTERMSIG(status) {
            0 => Ending::Exited(libc::WEXITSTATUS(status)),
            libc::SIGALRM => Ending::TimedOut,
            signal => Ending::Killed(signal),
        }))
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        for child in &self.alive {
            // SAFETY: kill has no preconditions. The child has not been collected, so its process
            // id has not been reused.
            unsafe { libc::kill(*child, libc::SIGKILL) };
        }
        for child in &self.alive {
            // If the kernel refuses to wait, the child still dies.
            let _ = wait(*child);
        }
    }
}

/// Makes the kernel kill this process when the thread that started it ends, or after [`LONGEST`]
/// seconds.
pub fn limit_life() {
    // SAFETY: these system calls have no preconditions.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(LONGEST);
    }
}

/// Runs `life` in the child, and exits with the status that `life` returns, or with [`PANICKED`].
fn live(parent: libc::pid_t, life: impl FnOnce() -> u8) -> ! {
    limit_life();
    // SAFETY: these system calls have no preconditions.
    unsafe {
        if libc::getppid() != parent {
            // The parent ended before `limit_life`, so its end did not kill this child.
            libc::_exit(i32::from(PANICKED));
        }
    }
    let status = catch_unwind(AssertUnwindSafe(life)).unwrap_or(PANICKED);
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Waits until a child ends, and returns its wait status.
fn wait(child: libc::pid_t) -> io::Result<libc::c_int> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable and outlives the call.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// Forks a child that sleeps for an hour.
    fn sleeper(forks: &mut Forks) -> libc::pid_t {
        let sleep = || {
            // SAFETY: sleep has no preconditions.
            unsafe { libc::sleep(3600) };
            0
        };
        // SAFETY: `sleep` takes no lock.
        unsafe { forks.fork(sleep) }.unwrap();
        *forks.alive.back().unwrap()
    }

    #[test]
    fn children_are_collected_in_order_with_their_status() {
        let mut forks = Forks::new(3);
        for status in [0, 7] {
            // SAFETY: the closure takes no lock.
            unsafe { forks.fork(|| status) }.unwrap();
        }
        // SAFETY: `resume_unwind` takes no lock, because it does not call the panic hook.
        unsafe { forks.fork(|| std::panic::resume_unwind(Box::new(()))) }.unwrap();
        assert_eq!(forks.count(), 3);
        for status in [0, 7, 101] {
            let ending = forks.collect_oldest().unwrap();
            assert_eq!(ending, Some(Ending::Exited(status)));
        }
        assert_eq!(forks.collect_oldest().unwrap(), None);
    }

    #[test]
    fn a_child_that_was_killed_is_reported() {
        let mut forks = Forks::new(1);
        let child = sleeper(&mut forks);
        // SAFETY: the child belongs to this test and has not been collected.
        unsafe { libc::kill(child, libc::SIGKILL) };
        let ending = forks.collect_oldest().unwrap();
        assert_eq!(ending, Some(Ending::Killed(libc::SIGKILL)));
    }

    #[test]
    fn no_child_survives_the_list() {
        let mut forks = Forks::new(2);
        let children = [sleeper(&mut forks), sleeper(&mut forks)];
        drop(forks);
        for child in children {
            // SAFETY: kill has no preconditions. Signal 0 only checks whether the child exists.
            assert_eq!(unsafe { libc::kill(child, 0) }, -1, "{child} lives");
        }
    }

    #[test]
    fn no_child_survives_the_thread_that_forked_it() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let child = std::thread::spawn(move || {
            let mut forks = Forks::new(1);
            let ready_and_asleep = || {
                let ready = writer.write_all(b"1");
                // SAFETY: sleep has no preconditions.
                unsafe { libc::sleep(3600) };
                u8::from(ready.is_err())
            };
            // SAFETY: the closure takes no lock.
            unsafe { forks.fork(ready_and_asleep) }.unwrap();
            reader.read_exact(&mut [0]).unwrap();
            let child = *forks.alive.back().unwrap();
            std::mem::forget(forks);
            child
        });
        let status = wait(child.join().unwrap()).unwrap();
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL);
    }
}
