//! Follows a process tree with ptrace. Only the events that the tracer handles slow the processes
//! down.

use std::io;

use heapdrome_schema::Ending;

use crate::WitnessError;
use crate::tree::Tree;
use crate::watchdog::{Cut, Watch};

const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

/// Attaches to a child that waits before its exec. The calling thread becomes the tracer.
pub(crate) fn seize(pid: i32) -> Result<(), WitnessError> {
    // SAFETY: PTRACE_SEIZE accesses no memory of this process.
    if unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, OPTIONS) } != 0 {
        return Err(WitnessError::PtraceForbidden {
            source: io::Error::last_os_error(),
        });
    }
    Ok(())
}

/// Follows the tree until all its processes have ended. Returns the ending of the process `leader`,
/// or [`Ending::TimedOut`] if the watchdog killed the tree after the timeout. Returns an error
/// after an interrupt, or if the kernel refuses to wait.
pub(crate) fn follow(leader: i32, tree: &mut Tree, watch: &Watch) -> Result<Ending, WitnessError> {
    let mut ending = None;
    while let Some((pid, code, status)) = next_event()? {
        if matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
            tree.died(pid);
            if pid == leader {
                ending = Some(if code == libc::CLD_EXITED {
                    Ending::Exited(status)
                } else {
                    Ending::Killed(status)
                });
                watch.leader_ended();
            }
            reap(pid);
        } else if let Some(stop) = take_stop(pid) {
            stopped(pid, stop, tree);
        }
    }
    match (watch.cut(), ending) {
        (Cut::Interrupt, _) => Err(WitnessError::Interrupted),
        (Cut::Time, _) => Ok(Ending::TimedOut),
        (Cut::None, Some(ending)) => Ok(ending),
        (Cut::None, None) => Err(WitnessError::System {
            action: "wait for the command",
            source: io::Error::from_raw_os_error(libc::ECHILD),
        }),
    }
}

/// Returns the ID, code and status of the next thread that stopped or died, without reaping it;
/// `None` if no thread is left. Waits only for this thread's own tracees, so that other threads may
/// wait for their children.
fn next_event() -> Result<Option<(i32, i32, i32)>, WitnessError> {
    let which = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    loop {
        // SAFETY: all-zero bytes are a valid `siginfo_t`, and `event` outlives the call. It is read
        // only after the call has filled it in.
        unsafe {
            let mut event: libc::siginfo_t = std::mem::zeroed();
            if libc::waitid(libc::P_ALL, 0, &mut event, which) == 0 {
                return Ok(Some((event.si_pid(), event.si_code, event.si_status())));
            }
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => {
                return Err(WitnessError::System {
                    action: "wait for the command",
                    source,
                });
            }
        }
    }
}

/// Reaps a dead thread. The kernel may reuse its ID afterwards.
fn reap(thread: i32) {
    // SAFETY: the status pointer is null, so the call writes no memory.
    unsafe {
        libc::waitpid(
            thread,
            std::ptr::null_mut(),
            libc::__WALL | libc::__WNOTHREAD,
        );
    }
}

/// Consumes the stop event of one thread, so that `next_event` does not report it again. Returns
/// the signal in the low byte and the event above it; `None` if the thread has been killed in the
/// meantime.
fn take_stop(thread: i32) -> Option<i32> {
    let which = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: all-zero bytes are a valid `siginfo_t`, and `event` outlives the call. It is read
    // only after a successful call, which fills it in or leaves its zeros.
    unsafe {
        let mut event: libc::siginfo_t = std::mem::zeroed();
        let taken = libc::waitid(libc::P_PID, thread.unsigned_abs(), &mut event, which) == 0;
        (taken && event.si_pid() == thread).then(|| event.si_status())
    }
}

fn stopped(thread: i32, stop: i32, tree: &mut Tree) {
    if !tree.knows(thread) {
        tree.adopt(thread);
    }
    let signal = stop & 0x7f;
    match stop >> 8 {
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            if let Some(child) = message(thread) {
                tree.born(thread, child, false);
            }
        }
        libc::PTRACE_EVENT_CLONE => {
            if let Some(child) = message(thread) {
                tree.born(thread, child, share_process(thread, child));
            }
        }
        libc::PTRACE_EVENT_EXEC => tree.replaced(thread, message(thread).unwrap_or(thread)),
        libc::PTRACE_EVENT_EXIT => tree.exiting(thread),
        libc::PTRACE_EVENT_SECCOMP => {
            if let Some(call) = message(thread) {
                tree.asked_system(thread, call);
            }
        }
        libc::PTRACE_EVENT_STOP => {
            let by_job_control = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
            if by_job_control.contains(&signal) {
                // The thread stays stopped until SIGCONT, as without a tracer.
                request(libc::PTRACE_LISTEN, thread, 0);
                return;
            }
        }
        0 if signal == libc::SIGTRAP && tree.called_new(thread) => {}
        // Any other stop precedes the delivery of a signal to the program.
        _ => {
            request(libc::PTRACE_CONT, thread, signal);
            return;
        }
    }
    request(libc::PTRACE_CONT, thread, 0);
}

/// Makes a ptrace request. It fails only if the thread has been killed in the meantime, which
/// `next_event` reports.
fn request(operation: libc::c_uint, thread: i32, data: i32) {
    // SAFETY: PTRACE_CONT and PTRACE_LISTEN access no memory of this process.
    unsafe { libc::ptrace(operation, thread, 0, i64::from(data)) };
}

fn message(thread: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word to `message`, which outlives the call.
    let read = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut message) };
    (read == 0).then_some(message as i32)
}

/// Returns whether two threads belong to one process.
fn share_process(thread: i32, other: i32) -> bool {
    let owner = |thread: i32| {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse::<i32>().ok()
    };
    let first = owner(thread);
    first.is_some() && first == owner(other)
}
