//! Child that asked to be traced, by the thread that started it.

use std::io;
use std::process::Child;
use std::ptr::null_mut;

use libc::{c_int, c_long, c_uint, pid_t};

/// Event of the child.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A signal stopped it.
    Stopped(c_int),
    /// It ended, with this status unless a signal killed it.
    Ended(Option<c_int>),
}

/// Traced child. It is killed when this is dropped; only the thread that started it may use it.
#[derive(Debug)]
pub(super) struct Traced {
    pid: pid_t,
    ended: bool,
}

impl Traced {
    /// Takes over the waiting for a child. No other code may wait for it.
    pub(super) fn new(child: &Child) -> Self {
        Self {
            pid: child.id() as pid_t,
            ended: false,
        }
    }

    /// Waits until the child stops or ends.
    pub(super) fn wait(&mut self) -> io::Result<Event> {
        let mut status = 0;
        // SAFETY: the status outlives the call. The child has not been waited for, so the number is
        // still the child's.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if libc::WIFSTOPPED(status) {
            return Ok(Event::Stopped(libc::WSTOPSIG(status)));
        }
        self.ended = true;
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        Ok(Event::Ended(code))
    }

    /// Makes the kernel kill the child when this process ends, for whatever reason.
    pub(super) fn end_with_tracer(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize)
    }

    /// Lets the child run one instruction, and suppresses the signal that stopped it.
    pub(super) fn step(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SINGLESTEP, 0)
    }

    fn request(&self, operation: c_uint, data: usize) -> io::Result<()> {
        // SAFETY: these requests use no memory of this process.
        check(unsafe { libc::ptrace(operation, self.pid, null_mut::<u8>(), data) })
    }

    /// Returns the address of the child's next instruction, and its stack pointer.
    pub(super) fn place(&self) -> io::Result<(u64, u64)> {
        // SAFETY: all zeros are valid registers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let place = &raw mut registers;
        // SAFETY: the structure is the one that this request writes, and outlives it.
        let result =
            unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, null_mut::<u8>(), place) };
        check(result)?;
        Ok((registers.rip, registers.rsp))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the child has not been waited for to its end, so the number is still the
            // child's; no status is requested.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, null_mut(), 0);
            }
        }
    }
}

fn check(result: c_long) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
