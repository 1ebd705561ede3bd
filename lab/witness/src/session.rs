//! One watched run.

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

/// Takes proofs.
#[derive(Debug)]
pub struct Witness {
    folder: PathBuf,
    objects: Arc<Objects>,
    contents: Contents,
}

/// A command that is running under the witness. Dropping it kills the whole tree.
#[derive(Debug)]
pub struct Session {
    leader: i32,
    watch: Arc<Watch>,
    tracer: Option<JoinHandle<Result<Report, WitnessError>>>,
    watchdog: Option<JoinHandle<()>>,
}

/// What a watched run showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The proof.
    pub proof: Proof,
    /// How the command itself ended.
    pub ending: Ending,
    /// Every program of every process, in the order in which they ended.
    pub images: Vec<ImageReport>,
    /// What following every block showed, where that was asked for.
    pub evidence: Option<Evidence>,
    /// A program that the kernel did not let trace another, because the witness traces all of them:
    /// it did other work than it does by itself.
    pub refused_tracer: Option<String>,
}

/// What a run is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The counting library counts calls and bytes.
    Counts,
    /// It follows every block besides, and calls to the system for memory are counted.
    Follows,
    /// The command runs without it.
    Uncounted,
}

impl Witness {
    /// A witness that keeps its records in shared memory, else below `folder`, else in the
    /// system's temporary folder. The records of a run are gone when its session is.
    ///
    /// # Errors
    /// When none of the three suits.
    pub fn new(folder: &Path) -> Result<Self, WitnessError> {
        Home::create(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            objects: Arc::default(),
            contents: Contents::default(),
        })
    }

    /// A hash over all that a proof depends on: libraries, executable, command, folder,
    /// environment and this witness. Another key makes a proof void.
    ///
    /// # Errors
    /// When the command or a library cannot be found or read.
    pub fn key(&self, request: &Request) -> Result<String, WitnessError> {
        request.key(&self.contents)
    }

    /// Starts the command with the counting library.
    ///
    /// # Errors
    /// When it cannot be started or followed.
    pub fn start(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Counts)
    }

    /// Starts the command with the counting library, which follows every block: the report has
    /// evidence. That costs more time than counting, and memory for each live block.
    ///
    /// # Errors
    /// When it cannot be started or followed.
    pub fn start_following(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Follows)
    }

    /// Starts the command in exactly the environment of a measured run. Nothing is counted: only
    /// the tracer tells, from relocations, which object served each program. The report's proof is
    /// none, but for what it lists as unserved.
    ///
    /// # Errors
    /// When it cannot be started or followed.
    pub fn start_uncounted(&self, request: &Request) -> Result<Session, WitnessError> {
        self.begin(request, Mode::Uncounted)
    }

    fn begin(&self, request: &Request, mode: Mode) -> Result<Session, WitnessError> {
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
        let deadline = request.timeout.map(|timeout| Instant::now() + timeout);
        let tracer = spawn("witness", move || run.take(&started))?;
        let Ok(leader) = starts.recv() else {
            // The thread ended before it had a process to speak of.
            return Err(join(tracer).err().unwrap_or(WitnessError::Unsupported));
        };
        // From here on, dropping the session ends the tree.
        let mut session = Session {
            leader,
            watch,
            tracer: Some(tracer),
            watchdog: None,
        };
        let (watch, objects) = (session.watch.clone(), self.objects.clone());
        let interrupt = request.interrupt.clone();
        let guard = move || watch.guard(deadline, &interrupt, &library, &objects);
        session.watchdog = Some(spawn("watchdog", guard)?);
        Ok(session)
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
        let source = io::Error::other("its thread ended by a fault of heapdrome's own");
        Err(WitnessError::System {
            action: "follow the command",
            source,
        })
    })
}

/// What the tracing thread needs; ptrace binds the whole run to one thread.
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
        // Nobody listens any more only if the session was given up, which the watchdog sees.
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

/// Tells the watchdog that its work is done, however the run ended.
struct Finished(Arc<Watch>);

impl Drop for Finished {
    fn drop(&mut self) {
        self.0.finished();
    }
}

impl Session {
    /// The process that runs the command itself.
    pub fn pid(&self) -> i32 {
        self.leader
    }

    /// Whether the command itself is still running.
    pub fn is_running(&self) -> bool {
        !self.watch.has_leader_ended()
    }

    /// Sends a signal to the command's process group, such as SIGTERM to a server.
    pub fn stop(&self, signal: i32) {
        self.watch.signal_group(self.leader, signal);
    }

    /// Waits for the command to end, stops what it left running, and says what was seen.
    ///
    /// # Errors
    /// When the run was interrupted or could not be followed to its end.
    pub fn finish(mut self) -> Result<Report, WitnessError> {
        self.end().unwrap_or(Err(WitnessError::Interrupted))
    }

    /// Waits for the tree to end, and for both threads.
    fn end(&mut self) -> Option<Result<Report, WitnessError>> {
        let report = self.tracer.take().map(join);
        if let Some(watchdog) = self.watchdog.take() {
            // The tracer has ended, and what it found does not depend on the watchdog.
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
                // Its thread could not be started; the kernel ends the tree with its tracer, but
                // the tracer itself waits for the command.
                self.stop(libc::SIGKILL);
            }
            // What the run showed is of no use to anyone now.
            let _ = self.end();
        }
    }
}
