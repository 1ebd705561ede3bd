//! Watched run of a command, and the witness that starts it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use heapdrome_schema::{Ending, Evidence, Proof};

use crate::contents::Contents;
use crate::evidence;
use crate::home::Home;
use crate::judge::Expected;
use crate::launch::Launch;
use crate::objects::Objects;
use crate::proof::{ImageReport, conclude, refused_tracer};
use crate::ticks::Reading;
use crate::tracer;
use crate::tree::Tree;
use crate::watchdog::Watch;
use crate::{Request, WitnessError};

/// Observer of commands, which creates the proofs.
#[derive(Debug)]
pub struct Witness {
    folder: PathBuf,
    objects: Arc<Objects>,
    contents: Contents,
}

/// Command that runs under the witness. Dropping it kills the whole tree.
#[derive(Debug)]
pub struct Session {
    leader: i32,
    watch: Arc<Watch>,
    tracer: Option<JoinHandle<Result<Report, WitnessError>>>,
    watchdog: Option<JoinHandle<()>>,
}

/// Findings of a watched run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Proof of the object that served malloc.
    pub proof: Proof,
    /// Ending of the command itself; `TimedOut` if the watchdog killed the tree after the timeout.
    pub ending: Ending,
    /// Programs of all processes, in the order in which they ended. Omits forked children that only
    /// executed another program, and programs that were killed before the library was loaded.
    pub images: Vec<ImageReport>,
    /// The findings from following every block, if requested.
    pub evidence: Option<Evidence>,
    /// Path of a program that the kernel did not allow to trace another process, because the
    /// witness already traces every process. The program behaved differently than in an unwatched
    /// run.
    pub refused_tracer: Option<String>,
}

/// Purpose of a watched run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The counting library counts calls and bytes.
    Counts,
    /// The library also follows every block, and the tracer counts the system calls for memory.
    Follows,
    /// The command runs without the counting library.
    Uncounted,
}

impl Witness {
    /// Creates a witness. It keeps its records in the first suitable place: shared memory,
    /// `folder`, or the system's temporary folder. The records of a run are removed with its
    /// session.
    ///
    /// # Errors
    /// Returns an error if none of these places is suitable, or this build has no counting library.
    pub fn new(folder: &Path) -> Result<Self, WitnessError> {
        Home::create(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            objects: Arc::default(),
            contents: Contents::default(),
        })
    }

    /// Returns a hash of the libraries, executable, command, working folder, path of standard
    /// input, environment and this witness. Omits variables that [`crate::is_bookkeeping`] accepts.
    /// A proof with a different key is invalid.
    ///
    /// # Errors
    /// Returns an error if the command or a library cannot be found or read.
    pub fn key(&self, request: &Request) -> Result<String, WitnessError> {
        request.key(&self.contents)
    }

    /// Starts the command with the counting library.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started or followed.
    pub fn start(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Counts)
    }

    /// Starts the command with the counting library, which follows every block, so that the report
    /// has evidence. Following takes more time than counting, and memory for each live block.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started or followed.
    pub fn start_following(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Follows)
    }

    /// Starts the command in exactly the environment of a measured run. No calls are counted: only
    /// the tracer finds, from relocations, which object served each program. So the proof in the
    /// report has no calls, no bytes and too little coverage. Only its list of unserved programs is
    /// meaningful.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started or followed.
    pub fn start_uncounted(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Uncounted)
    }

    fn begin(&self, request: &Request, mode: Mode) -> Result<Session, WitnessError> {
        let (mut session, library) = self.launch(request, mode)?;
        let deadline = request.timeout.map(|timeout| Instant::now() + timeout);
        let (watch, objects) = (session.watch.clone(), self.objects.clone());
        let interrupt = request.interrupt.clone();
        let guard = move || watch.guard(deadline, &interrupt, &library, &objects);
        session.watchdog = Some(spawn("watchdog", guard)?);
        Ok(session)
    }

    /// Starts the command and its tracer. Returns the session, which has no watchdog yet, and the
    /// path of the counting library.
    fn launch(&self, request: &Request, mode: Mode) -> Result<(Session, PathBuf), WitnessError> {
        let home = Arc::new(Home::create(&self.folder)?);
        let key = request.key(&self.contents)?;
        let library = home.library();
        let counting = (mode != Mode::Uncounted).then_some(library.as_path());
        let mut launch = Launch::prepare(request, request.preload(counting)?)?;
        let watch = Arc::new(Watch::default());
        let needed = request.needed_preload(counting)?;
        let follows = mode == Mode::Follows;
        if follows {
            home.follow_blocks()?;
            launch.count_system_calls();
        }
        let mut tree = Tree::new(home, needed, self.objects.clone(), watch.clone());
        match mode {
            Mode::Counts => tree.watch_new(),
            Mode::Follows => tree.follow_blocks(),
            Mode::Uncounted => {}
        }
        let run = Run {
            launch,
            tree,
            watch: watch.clone(),
            key,
            expected: Expected::new(&request.entrant),
        };
        let (started, starts) = mpsc::channel();
        let tracer = spawn("witness", move || run.take(&started))?;
        let Ok(leader) = starts.recv() else {
            // The thread ended before the command was started and followed.
            return Err(join(tracer).err().unwrap_or(WitnessError::Unsupported));
        };
        let session = Session {
            leader,
            watch,
            tracer: Some(tracer),
            watchdog: None,
        };
        Ok((session, library))
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, WitnessError> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    thread.map_err(|source| WitnessError::System {
        action: "start a thread",
        source,
    })
}

fn join(tracer: JoinHandle<Result<Report, WitnessError>>) -> Result<Report, WitnessError> {
    tracer.join().unwrap_or_else(|_| {
        let source = io::Error::other("its thread panicked, which is a bug in heapdrome");
        Err(WitnessError::System {
            action: "follow the command",
            source,
        })
    })
}

/// State of the tracing thread. The whole run needs one thread, because only the thread that
/// attached to a process can trace it.
struct Run {
    launch: Launch,
    tree: Tree,
    watch: Arc<Watch>,
    key: String,
    expected: Expected,
}

impl Run {
    fn take(mut self, started: &mpsc::Sender<i32>) -> Result<Report, WitnessError> {
        let finished = Finished(self.watch.clone());
        let reading = Reading::now();
        let mut child = self.launch.spawn(|pid| {
            tracer::seize(pid)?;
            self.tree.begin(pid);
            Ok(())
        })?;
        // The send cannot fail, because `Witness::launch` holds the receiver until it has received
        // the ID.
        let _ = started.send(child.pid);
        let ending = tracer::follow(child.pid, &mut self.tree, &self.watch);
        drop(finished);
        if let Some(error) = child.exec_error() {
            return Err(error);
        }
        let ending = ending?;
        let evidence = evidence::conclude(&self.tree.ended, reading.rate());
        let refused_tracer = refused_tracer(&self.tree.ended);
        let (proof, images) = conclude(&self.tree.ended, &self.expected, self.key);
        Ok(Report {
            proof,
            ending,
            images,
            evidence,
            refused_tracer,
        })
    }
}

/// Guard that reports the end of the run to the watchdog when it is dropped, even after an error.
struct Finished(Arc<Watch>);

impl Drop for Finished {
    fn drop(&mut self) {
        self.0.finished();
    }
}

impl Session {
    /// Returns the process ID of the command itself.
    pub fn pid(&self) -> i32 {
        self.leader
    }

    /// Returns whether the command itself is still running.
    pub fn is_running(&self) -> bool {
        !self.watch.has_leader_ended()
    }

    /// Sends a signal to the command's process group, such as SIGTERM to a server.
    pub fn stop(&self, signal: i32) {
        self.watch.signal_group(self.leader, signal);
    }

    /// Waits for the command to end, kills the processes that it left running, and returns the
    /// report.
    ///
    /// # Errors
    /// Returns an error if the command could not be executed, or the run was interrupted or could
    /// not be followed to its end.
    pub fn finish(mut self) -> Result<Report, WitnessError> {
        self.end().unwrap_or(Err(WitnessError::Interrupted))
    }

    /// Waits for the tree to end, and joins both threads. Returns `None` if they were joined
    /// before.
    fn end(&mut self) -> Option<Result<Report, WitnessError>> {
        let report = self.tracer.take().map(join);
        if let Some(watchdog) = self.watchdog.take() {
            // A panic of the watchdog does not affect the findings of the tracer, which has ended.
            let _ = watchdog.join();
        }
        report
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.tracer.is_some() {
            self.watch.abandon();
            if self.watchdog.is_none() {
                // The watchdog's thread could not be started, so this thread kills the tree.
                self.watch.kill_until_finished();
            }
            // The findings of the run are no longer needed.
            let _ = self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_session_without_a_watchdog_ends_processes_outside_the_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("output");
        let script = "setsid sh -c 'echo ready; exec sleep 60' & wait";
        let mut request = Request::of_system(&["/bin/sh", "-c", script]);
        request.stdout = Some(output.clone());
        let witness = Witness::new(folder.path()).expect("a witness");
        let (session, _) = witness.launch(&request, Mode::Counts).expect("a session");
        while std::fs::read(&output).is_ok_and(|text| text.is_empty()) {
            assert!(session.is_running());
            std::thread::sleep(Duration::from_millis(10));
        }
        let start = Instant::now();
        drop(session);
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
