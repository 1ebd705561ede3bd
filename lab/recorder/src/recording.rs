//! A recording, from the command's start to the complete trace.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdrome_system::{interrupt, room};
use heapdrome_trace::{Bypass, Recording, TraceError, Writer};
use heapdrome_witness::ring::{CONTROL, Control};
use heapdrome_witness::{FUNCTIONS, Home};

use crate::backlog::Backlog;
use crate::clock::Clock;
use crate::delivery::WorkerEnded;
use crate::drainer::{Counts, Drainer};
use crate::error::{RecorderError, failed};
use crate::pace::FullestStacks;
use crate::process;
use crate::rings::RingFolder;
use crate::shared::{Closing, Shared};
use crate::unwind::Unwindings;
use crate::worker::{Worker, Written};

/// Maximum size of the backlog in bytes, if memory is plentiful.
const BACKLOG: u64 = 512 << 20;

/// Divisor of the memory available at the start of a recording. The backlog takes at most the
/// quotient.
const BACKLOG_PART: u64 = 4;

/// Minimum duration, in nanoseconds, of a timed call that counts as interrupted.
const INTERRUPTED: u64 = 400_000;

/// Nice value of the worker while the command runs. Entries that the worker has not handled yet
/// wait in the backlog.
const NICER: libc::c_int = 10;

/// A request for a recording.
#[derive(Debug)]
pub struct Request<'a> {
    /// The command with its arguments.
    pub command: &'a [String],
    /// Variables, other than `LD_PRELOAD`, that are set for the command in addition to the
    /// inherited ones.
    pub environment: Vec<(String, String)>,
    /// Libraries that follow the recording library in `LD_PRELOAD`.
    pub preload: Option<OsString>,
    /// The allocator as the user named it; empty if the user named none.
    pub allocator: String,
    /// Maximum duration of the recording; `None` for no limit. The command itself continues
    /// afterwards.
    pub limit: Option<Duration>,
    /// Mean number of requested bytes between two recorded blocks; 0 to record every call.
    pub sample_bytes: u64,
    /// Mean number of requested bytes between two blocks whose stack is recorded; 1 to record the
    /// stack of every recorded call, 0 to record none.
    pub stack_bytes: u64,
    /// Version of heapdrome, which the trace records.
    pub version: &'a str,
    /// Folder for the recording library if shared memory is not suitable.
    pub folder: &'a Path,
}

/// Outcome of a recording.
#[derive(Debug)]
pub struct Summary {
    /// Number of recorded processes.
    pub processes: u32,
    /// Number of operations in the trace.
    pub operations: u64,
    /// Number of operations whose order had to be repaired.
    pub repaired: u64,
    /// Total time for which threads waited for the collector.
    pub waited: Duration,
    /// Number of processes whose recording stopped before their end.
    pub gave_up: u32,
    /// Number of sampled blocks that were not recorded, because their process ran out of address
    /// space.
    pub left_out: u64,
    /// Lower bound of the number of stacks that could not be recorded.
    pub stacks_lost: u64,
    /// Number of recorded stacks with an address whose file is unknown.
    pub stacks_unplaced: u64,
    /// Processes that were not recorded.
    pub bypassed: Vec<Bypass>,
    /// Exit status of the command, for which [`record`] always waits; `None` if it is unknown.
    pub ending: Option<ExitStatus>,
    /// Duration of the command; `None` if it is unknown.
    pub took: Option<Duration>,
    /// Time that the collector took to complete the trace after the recording's end.
    pub afterwards: Duration,
    /// Processor time of the collector.
    pub processor_time: Duration,
    /// Maximum resident memory of the collector, rings included, in bytes.
    pub peak_resident: u64,
}

/// Runs a command and writes the allocations of its recorded processes to `sink`. The recording
/// ends when the last process has ended, when the time limit passes, or when `interrupted` is set
/// and the command has ended. Once the command runs, returns only after the command's end.
///
/// # Errors
/// Returns an error if the recording cannot be prepared, the command cannot be run, or the trace
/// cannot be written. In the last case the command continues, and this function waits for its end.
pub fn record<W: Write + Send>(
    request: &Request<'_>,
    sink: W,
    interrupted: &AtomicBool,
) -> Result<Summary, RecorderError> {
    process::survive_file_limit();
    let home = Home::create(request.folder)?;
    let control = make_control(&home, request).map_err(failed("share memory with the command"))?;
    let clock = Clock::start();
    // Relaxed: the command starts later.
    control
        .interrupted
        .store(clock.ticks_of(INTERRUPTED), Ordering::Relaxed);
    adopt_orphans().map_err(failed("wait for daemons"))?;
    let leader = start(request, &home.library())?;
    let mut tree = Tree {
        leader,
        began: Instant::now(),
        ending: None,
        took: None,
        is_empty: false,
    };
    // Nothing is written before the command runs, so a command that cannot be run leaves no trace
    // file.
    let parts = Parts {
        home: &home,
        control,
        clock,
    };
    let counts = write(request, sink, parts, &mut tree, interrupted);
    tree.wait_for_leader();
    Ok(summary(counts?, &tree))
}

/// Objects that a recording needs besides its request.
struct Parts<'a> {
    home: &'a Home,
    control: Shared<Control>,
    clock: Clock,
}

fn write<W: Write + Send>(
    request: &Request<'_>,
    sink: W,
    parts: Parts<'_>,
    tree: &mut Tree,
    interrupted: &AtomicBool,
) -> Result<Outcome, TraceError> {
    let Parts {
        home,
        control,
        clock,
    } = parts;
    let control = Closing(control);
    let writer = Writer::new(sink, &description(request))?;
    let (sender, receiver) = mpsc::channel();
    let backlog = Backlog::new(backlog_bytes());
    let parts = (backlog, sender);
    let folder = RingFolder::new(home.folder());
    let library = home.library();
    let fullest_stacks = FullestStacks::default();
    let unwindings = (request.stack_bytes != 0)
        .then(|| Unwindings::new(home.folder(), &library, fullest_stacks.clone()));
    let mut drainer = Drainer::new(control, folder, library, clock, parts, fullest_stacks);
    let mut worker = Worker::new(receiver, clock, writer, unwindings);
    let stop = AtomicBool::new(false);
    let (drained, worker) = std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            yield_to_others();
            worker.work_until(&stop).map(|()| worker)
        });
        let drained = collect(&mut drainer, tree, request.limit, interrupted);
        let drained = drained.and_then(|()| drainer.finish_all());
        // Relaxed: the flag publishes no other memory.
        stop.store(true, Ordering::Relaxed);
        (drained, working.join())
    });
    let ended = Instant::now();
    // The recording is over. The rest of the work runs at this thread's priority, because it no
    // longer competes with recorded processes.
    let worker = worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let written = worker.finish()?;
    match drained {
        Ok(counts) => Ok(Outcome {
            counts,
            written,
            afterwards: ended.elapsed(),
        }),
        Err(WorkerEnded) => unreachable!("a worker that ends early has an error"),
    }
}

/// Returns the maximum number of bytes of the backlog.
fn backlog_bytes() -> u64 {
    let available = room::available().map_or(u64::MAX, |room| room.bytes.0);
    BACKLOG.min(available / BACKLOG_PART)
}

/// Lowers the priority of the calling thread.
fn yield_to_others() {
    // SAFETY: the arguments are numbers; 0 is the calling thread. If the call fails, the thread
    // only takes more time from others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICER) };
}

/// Totals of the drainer and the worker, and the worker's time after the recording's end.
struct Outcome {
    counts: Counts,
    written: Written,
    afterwards: Duration,
}

fn summary(outcome: Outcome, tree: &Tree) -> Summary {
    let Outcome {
        counts,
        written,
        afterwards,
    } = outcome;
    Summary {
        processes: counts.processes,
        operations: written.operations,
        repaired: written.repaired,
        waited: Duration::from_nanos(counts.waited),
        gave_up: counts.gave_up,
        left_out: counts.left_out,
        stacks_lost: counts.stacks_left_out + written.stacks_lost,
        stacks_unplaced: written.stacks_unplaced,
        bypassed: counts.bypassed,
        ending: tree.ending,
        took: tree.took,
        afterwards,
        processor_time: Duration::from_nanos(process::own_time()),
        peak_resident: process::own_peak(),
    }
}

fn collect(
    drainer: &mut Drainer,
    tree: &mut Tree,
    limit: Option<Duration>,
    interrupted: &AtomicBool,
) -> Result<(), WorkerEnded> {
    let end = limit.map(|limit| Instant::now() + limit);
    loop {
        tree.reap(|pid| drainer.note_end(pid))?;
        let pause = drainer.round()?;
        let over = end.is_some_and(|end| Instant::now() >= end);
        let done = tree.is_empty && !drainer.is_recording();
        if over || done || (interrupt::raised(interrupted) && tree.ending.is_some()) {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
}

/// Creates the control file, through which the processes learn that they are recorded.
fn make_control(home: &Home, request: &Request<'_>) -> io::Result<Shared<Control>> {
    let path = home.folder().join(CONTROL);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    file.set_len(process::page_bytes())?;
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        // Programs of root may switch to another user before they first allocate, so every user
        // must be able to write the file.
        file.set_permissions(Permissions::from_mode(0o666))?;
    }
    let control = Shared::<Control>::map(&file)?;
    control
        .collector
        .store(std::process::id(), Ordering::Relaxed);
    let namespace = process::namespace();
    control.namespace.store(namespace, Ordering::Relaxed);
    // Relaxed: the command starts later.
    let (sample_bytes, stack_bytes) = (request.sample_bytes, request.stack_bytes);
    control.sample_bytes.store(sample_bytes, Ordering::Relaxed);
    control.stack_bytes.store(stack_bytes, Ordering::Relaxed);
    Ok(control)
}

fn description(request: &Request<'_>) -> Recording {
    let began = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Recording {
        functions: FUNCTIONS.map(str::to_owned).to_vec(),
        command: request.command.to_vec(),
        allocator: request.allocator.clone(),
        began: began.as_nanos() as u64,
        heapdrome: request.version.to_owned(),
        page_bytes: process::page_bytes(),
        sample_bytes: request.sample_bytes,
        stack_bytes: request.stack_bytes,
    }
}

fn start(request: &Request<'_>, library: &Path) -> Result<u32, RecorderError> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(more) = &request.preload {
        preload.push(":");
        preload.push(more);
    }
    let program = &request.command[0];
    let child = Command::new(program)
        .args(&request.command[1..])
        .envs(
            request
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .env("LD_PRELOAD", preload)
        .spawn();
    let cannot = |source| RecorderError::CannotRun {
        program: program.clone(),
        source,
    };
    child.map(|child| child.id()).map_err(cannot)
}

/// Makes this process the parent of orphaned descendants, so that it can wait for daemons.
fn adopt_orphans() -> io::Result<()> {
    // SAFETY: the call takes a number and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1_u64, 0_u64, 0_u64, 0_u64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processes of the command.
struct Tree {
    leader: u32,
    began: Instant,
    ending: Option<ExitStatus>,
    took: Option<Duration>,
    /// Whether all processes of the command have ended and were reaped.
    is_empty: bool,
}

impl Tree {
    /// Reaps the processes that have ended. Calls `before` with the id of each process before it
    /// reaps the process.
    fn reap<E>(&mut self, mut before: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        while let Some(pid) = self.ended() {
            before(pid)?;
            let mut status = 0;
            // SAFETY: `status` has room for the result.
            unsafe { libc::waitpid(pid.cast_signed(), &raw mut status, libc::WNOHANG) };
            if pid == self.leader {
                self.ending = Some(ExitStatus::from_raw(status));
                self.took = Some(self.began.elapsed());
            }
        }
        Ok(())
    }

    /// Returns the id of a process that has ended and was not reaped yet. Updates `is_empty`.
    fn ended(&mut self) -> Option<u32> {
        // SAFETY: every field is an integer or a pointer, and zero is valid for both.
        let mut state: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `state` has room for the result. The call reaps no child, because of `WNOWAIT`.
        self.is_empty = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut state, options) } != 0;
        // SAFETY: the field is an integer. `waitid` sets it, or leaves it zero.
        let pid = unsafe { state.si_pid() }.unsigned_abs();
        (pid != 0).then_some(pid)
    }

    fn wait_for_leader(&mut self) {
        while self.ending.is_none() && !self.is_empty {
            let Ok(()) = self.reap(|_| Ok::<(), std::convert::Infallible>(()));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
