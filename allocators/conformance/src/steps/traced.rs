//! Child process that is traced by the thread that started it.

use std::io;
use std::process::Child;
use std::ptr::null_mut;

use libc::{c_int, c_long, c_uint, pid_t};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A signal stopped the child.
    Stopped(c_int),
    /// The child ended: with this exit status, or killed by a signal.
    Ended(Option<c_int>),
}

/// Traced child. Dropping this value kills the child. Only the thread that started the child may
/// use it.
#[derive(Debug)]
pub(super) struct Traced {
    pid: pid_t,
    ended: bool,
}

impl Traced {
    /// Takes over a child. From now on, no other code may wait for it.
    pub(super) fn new(child: &Child) -> Self {
        Self {
            pid: child.id() as pid_t,
            ended: false,
        }
    }

    /// Waits until the child stops or ends.
    pub(super) fn wait(&mut self) -> io::Result<Event> {
        let mut status = 0;
        // SAFETY: the status outlives the call. No earlier wait has reported the child's end, so
        // the number still belongs to the child.
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

    /// Makes the kernel kill the child when this process ends for any reason.
    pub(super) fn end_with_tracer(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize)
    }

    /// Lets the child execute one instruction. Suppresses the signal that stopped the child.
    pub(super) fn step(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SINGLESTEP, 0)
    }

    fn request(&self, operation: c_uint, data: usize) -> io::Result<()> {
        // SAFETY: these requests do not access memory of this process.
        check(unsafe { libc::ptrace(operation, self.pid, null_mut::<u8>(), data) })
    }

    /// Returns the address of the child's next instruction, and its stack pointer.
    pub(super) fn place(&self) -> io::Result<(u64, u64)> {
        // SAFETY: all-zero registers are a valid value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let place = &raw mut registers;
        // SAFETY: this request writes a structure of this type, which outlives the call.
        let result =
            unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, null_mut::<u8>(), place) };
        check(result)?;
        Ok((registers.rip, registers.rsp))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: no wait has reported the child's end, so the number still belongs to the
            // child. No status is requested.
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
