//! The launcher's side of the connection: reads requests, starts processes, and waits for them.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

use super::end::{Halt, Running};
use super::message::{CgroupFiles, Outcome, Refusal, Reply, Request, Spawn, Stop, Text};
use super::{moment, wait};
use crate::counters::Counters;
use crate::tree::{self, Earlier};

/// Description of the operation that requires a pidfd, with the kernel version that it needs.
const NO_PIDFD: &str = "waiting for a process by a descriptor (pidfd_open, Linux 5.3 or newer)";

/// Serves requests until the socket on standard input closes. Returns the exit status.
pub(super) fn serve() -> i32 {
    let Ok(socket) = take_socket() else { return 4 };
    if wait::stand_apart().is_err() {
        return 4;
    }
    let mut server = Server {
        socket: BufReader::new(socket),
    };
    // Report a missing pidfd_open at the start, not in the middle of a race.
    let greeting = match wait::pidfd(tree::own_pid()) {
        Ok(_) => Reply::Ready,
        Err(error) => Reply::Unable(no_pidfd(&error)),
    };
    if server.answer(&greeting).is_err() {
        return 4;
    }
    while let Some(request) = server.next_request() {
        let Request::Run(spawn) = request else {
            continue;
        };
        let reply = match server.run(&spawn) {
            Ok(reply) => reply,
            Err(Halt::Hangup) => break,
            Err(Halt::Immortal(names)) => Reply::Immortal(names),
            Err(Halt::Unable(reason)) => Reply::Unable(reason),
        };
        if server.answer(&reply).is_err() {
            break;
        }
    }
    i32::from(Running::nothing().kill_tree().is_err())
}

fn no_pidfd(error: &io::Error) -> String {
    format!("the kernel refuses {NO_PIDFD}: {error}")
}

/// Moves the socket to a descriptor that children do not inherit.
fn take_socket() -> io::Result<UnixStream> {
    // SAFETY: descriptor 0 is open, because Rust's startup code opens `/dev/null` in place of a
    // closed standard stream. This value is its only owner, because the standard library's handle
    // of standard input is never used.
    let stdin = unsafe { OwnedFd::from_raw_fd(0) };
    let socket = UnixStream::from(stdin.try_clone()?);
    drop(stdin);
    // The lowest free descriptor is now 0, so `/dev/null` permanently occupies it.
    let _ = File::open("/dev/null")?.into_raw_fd();
    Ok(socket)
}

struct Server {
    socket: BufReader<UnixStream>,
}

impl Server {
    fn answer(&mut self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.socket.get_mut().write_all(&line)
    }

    fn next_request(&mut self) -> Option<Request> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    fn run(&mut self, spawn: &Spawn) -> Result<Reply, Halt> {
        let mut command = match command_of(spawn) {
            Ok(command) => command,
            Err(refusal) => return Ok(Reply::Refused(refusal)),
        };
        // Processes that earlier steps left running, such as a daemon, must survive this step. The
        // launcher of measured commands has no such processes.
        let earlier = match spawn.sweep {
            true => Earlier::default(),
            false => Running::nothing().left(),
        };
        let mut counters = Counters::open(spawn.counters);
        let place = match Place::enter(spawn) {
            Ok(place) => place,
            Err(refusal) => return Ok(Reply::Refused(refusal)),
        };
        let started = Instant::now();
        let child = command.spawn();
        drop(place);
        let pid = match child {
            Ok(child) => libc::pid_t::try_from(child.id()).unwrap_or(0),
            Err(error) => return Ok(Reply::Refused(Refusal::Program(error.to_string()))),
        };
        let mut running = Running::new(pid, earlier);
        self.wait(&mut running, spawn, started)?;
        let wall = moment::elapsed().unwrap_or_else(|| started.elapsed());
        let detached = if spawn.sweep {
            running.sweep()?
        } else {
            Vec::new()
        };
        let (usage, ending) = running.cost(spawn.add_orphans).ok_or(Halt::Hangup)?;
        let outcome = Outcome {
            wall: wall.into(),
            usage,
            ending,
            counters: counters.read(),
            detached,
        };
        Ok(Reply::Ended(Box::new(outcome)))
    }

    /// Waits for the end of `running`. Ends it at its time limit or when the client requests it.
    fn wait(&mut self, running: &mut Running, spawn: &Spawn, started: Instant) -> Result<(), Halt> {
        // A timeout beyond the range of the clock means no limit.
        let deadline = spawn
            .timeout
            .and_then(|timeout| started.checked_add(timeout.into()));
        let pidfd = match wait::pidfd(running.pid()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                running.kill_tree()?;
                return Err(Halt::Unable(no_pidfd(&error)));
            }
        };
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let asked_before = !self.socket.buffer().is_empty();
            let patience = if asked_before {
                Some(Duration::ZERO)
            } else {
                left
            };
            let fds = [pidfd.as_fd(), self.socket.get_ref().as_fd()];
            let [ended, asked] = wait::poll(fds, patience).map_err(|_| Halt::Hangup)?;
            if ended {
                return running.wait_for().map_err(|_| Halt::Hangup);
            }
            if asked || asked_before {
                return match self.next_request() {
                    Some(Request::Stop(Stop::Kill)) => running.kill_tree(),
                    Some(Request::Stop(Stop::Terminate(grace))) => {
                        self.terminate(running, grace.into())
                    }
                    _ => Err(Halt::Hangup),
                };
            }
            if deadline.is_some_and(|end| Instant::now() >= end) {
                return running.time_out();
            }
        }
    }

    /// Sends SIGTERM to the process group of `running`. Kills the whole tree after `grace`, or
    /// earlier if the client sends another request or is gone.
    fn terminate(&self, running: &mut Running, grace: Duration) -> Result<(), Halt> {
        wait::terminate_group(running.pid());
        let started = Instant::now();
        while !running.reap() {
            let glance = Some(Duration::from_millis(1));
            let asked = wait::poll([self.socket.get_ref().as_fd()], glance);
            if !matches!(asked, Ok([false])) || started.elapsed() >= grace {
                return running.kill_tree();
            }
        }
        Ok(())
    }
}

fn command_of(spawn: &Spawn) -> Result<Command, Refusal> {
    let mut reading = OpenOptions::new();
    reading.read(true);
    // Append mode keeps processes from overwriting each other's output. The file is truncated
    // first.
    let mut writing = OpenOptions::new();
    writing.append(true).create(true);
    let stdin = open(&spawn.stdin, &reading)?;
    let stdout = open_emptied(&spawn.stdout, &writing)?;
    let stderr = open_emptied(&spawn.stderr, &writing)?;
    let mut command = Command::new(spawn.program.to_os());
    command
        .arg0(spawn.name.to_os())
        .args(spawn.arguments.iter().map(Text::to_os))
        .env_clear()
        .envs(
            spawn
                .environment
                .iter()
                .map(|(name, value)| (name.to_os(), value.to_os())),
        )
        .current_dir(spawn.directory.to_os())
        .process_group(0)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    // A `pre_exec` closure makes the standard library fork instead of using posix_spawn. The kernel
    // includes the memory that a process leaves at exec in its peak: after a fork, the few hundred
    // KiB copied so far; after posix_spawn, all memory of the launcher, which the child shares.
    // SAFETY: the closure only reads a clock and writes to a shared page, which are
    // async-signal-safe.
    unsafe { command.pre_exec(moment::in_child()) };
    Ok(command)
}

fn open(path: &Text, options: &OpenOptions) -> Result<Stdio, Refusal> {
    let refused = |error: io::Error| Refusal::Stream {
        path: path.clone(),
        error: error.raw_os_error().unwrap_or(libc::EIO),
    };
    options
        .open(path.to_path())
        .map(Stdio::from)
        .map_err(refused)
}

fn open_emptied(path: &Text, options: &OpenOptions) -> Result<Stdio, Refusal> {
    if let Ok(file) = OpenOptions::new().write(true).open(path.to_path()) {
        // A file that cannot be truncated is not a regular file, for example /dev/null.
        let _ = file.set_len(0);
    }
    open(path, options)
}

/// CPUs and control group in which a process is started. Dropping this value makes the launcher
/// leave both.
struct Place<'a> {
    cpus: Option<CpuSet>,
    cgroup: Option<&'a CgroupFiles>,
}

impl<'a> Place<'a> {
    fn enter(spawn: &'a Spawn) -> Result<Self, Refusal> {
        let mut place = Self {
            cpus: None,
            cgroup: None,
        };
        if !spawn.pin.is_empty() {
            let refused = |error: io::Error| Refusal::Pin(error.to_string());
            let before = wait::affinity().map_err(refused)?;
            wait::cpu_set(&spawn.pin)
                .and_then(|set| wait::set_affinity(&set))
                .map_err(refused)?;
            place.cpus = Some(before);
        }
        if let Some(files) = &spawn.cgroup {
            join(&files.join).map_err(|error| Refusal::Cgroup(error.to_string()))?;
            place.cgroup = Some(files);
            let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            if !groups.lines().any(|line| line.ends_with(&files.name)) {
                return Err(Refusal::Cgroup("the group was not entered".to_owned()));
            }
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(cpus) = &self.cpus {
            // This affinity was valid before, so setting it fails only if the CPUs have gone
            // offline.
            let _ = wait::set_affinity(cpus);
        }
        if let Some(files) = self.cgroup {
            // If leaving fails, the group cannot be removed until the launcher ends.
            let _ = join(&files.leave);
        }
    }
}

/// Moves this process into the group with this `cgroup.procs`. Writing 0 moves the writer itself.
fn join(procs: &Text) -> io::Result<()> {
    std::fs::write(Path::new(&procs.to_os()), "0")
}
