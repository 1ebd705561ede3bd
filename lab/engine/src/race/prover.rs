//! Untimed runs under the witness. They prove which object serves malloc, count the work again, and
//! track blocks.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_measure::{Race, entrant_environment};
use heapdrome_schema::{Coverage, Ending, Evidence, JournalLine, Plan, Proof, Role};
use heapdrome_witness::{Report, Request, Session, Witness, WitnessError, add_uncounted};

use super::server;
use super::store::Shared;
use crate::failure::Failure;

/// Runner of the witness for the untimed runs of a race.
pub struct Prover {
    witness: Witness,
    scratch: tempfile::TempDir,
    interrupt: Arc<AtomicBool>,
    shortest: Cell<Option<Duration>>,
}

/// Result of a run under the witness for one entrant.
pub enum Shown {
    /// The command succeeded. The value is the proof.
    Proof(Proof),
    /// The program of this name tried to trace another program, but the kernel refused. Therefore
    /// the run did not do the work of timed runs.
    Traces(String),
    /// The command failed under this entrant, so the run proves nothing.
    Failed {
        /// Ending of the command.
        ending: Ending,
        /// Last lines of its standard error.
        stderr_tail: String,
    },
}

/// Outcome of one run under the witness.
enum Watched {
    /// The run succeeded.
    Well(Box<Report>),
    /// The run failed. The text is the end of its standard error.
    Failed(Ending, String),
}

impl From<Watched> for Shown {
    fn from(watched: Watched) -> Self {
        match watched {
            Watched::Well(report) => Self::Proof(report.proof),
            Watched::Failed(ending, stderr_tail) => Self::Failed {
                ending,
                stderr_tail,
            },
        }
    }
}

/// Number of lines kept from the standard error of a failing run.
const TAIL_LINES: usize = 10;

impl Prover {
    /// Creates a prover. Its witness keeps records in `folder` if shared memory is not suitable.
    ///
    /// # Errors
    /// When no folder is suitable for the records, or no temporary folder can be created.
    pub fn new(folder: &Path, interrupt: Arc<AtomicBool>) -> Result<Self, Failure> {
        Ok(Self {
            witness: Witness::new(folder).map_err(Failure::machine)?,
            scratch: tempfile::tempdir().map_err(Failure::machine)?,
            interrupt,
            shortest: Cell::new(None),
        })
    }

    /// Returns the duration of the shortest successful run under the witness so far, `--prepare`
    /// included; `None` if there was no such run. A run without the witness is shorter.
    pub fn shortest_run(&self) -> Option<Duration> {
        self.shortest.get()
    }

    /// Returns whether `entrant` has a proof that is still valid: libraries, executable, command
    /// and environment are unchanged.
    ///
    /// # Errors
    /// When a library or the executable is no longer readable.
    pub fn holds(&self, race: &Race, entrant: usize) -> Result<bool, Failure> {
        let Some(proof) = &race.proofs()[entrant] else {
            return Ok(false);
        };
        let key = self
            .witness
            .key(&self.request(race, entrant))
            .map_err(witness_failure)?;
        Ok(key == proof.key)
    }

    /// Determines whether `entrant` serves the command of `race`, and writes the proof or the
    /// failure to the journal. Reuses the baseline's proof for its twin if that proof is valid, and
    /// reuses a matching proof in `shared`.
    ///
    /// # Errors
    /// When the command cannot be traced, the journal cannot be written, or the user interrupts.
    pub fn prove(
        &self,
        race: &mut Race,
        entrant: usize,
        shared: Option<&mut Shared>,
    ) -> Result<Shown, Failure> {
        let request = self.request(race, entrant);
        let key = self.witness.key(&request).map_err(witness_failure)?;
        let shown = match (proven_twin(race, entrant, &key), shared) {
            (Some(proof), _) => Shown::Proof(proof),
            (None, None) => self.watch(race, &request, key)?,
            (None, Some(shared)) => self.prove_once(race, &request, key, shared)?,
        };
        let line = match &shown {
            Shown::Proof(proof) => JournalLine::Proof {
                entrant,
                proof: proof.clone(),
            },
            Shown::Failed {
                ending,
                stderr_tail,
            } => JournalLine::Failed {
                entrant,
                ending: *ending,
                during: "the untimed run that heapdrome traced".to_owned(),
                stderr_tail: stderr_tail.clone(),
            },
            Shown::Traces(_) => return Ok(shown),
        };
        race.record(line).map_err(Failure::machine)?;
        Ok(shown)
    }

    /// Runs the command under `entrant` once more and returns the counts without recording them;
    /// `None` if the command failed.
    ///
    /// # Errors
    /// When the command cannot be traced, or the user interrupts.
    pub fn count(&self, race: &mut Race, entrant: usize) -> Result<Option<Proof>, Failure> {
        let request = self.request(race, entrant);
        match self.follow(race, || self.witness.start(&request))? {
            Watched::Well(report) => Ok(Some(report.proof)),
            Watched::Failed(..) => Ok(None),
        }
    }

    /// Runs the command under `entrant` once more, for at most `limit`, and tracks every block.
    /// Returns `None` if the run failed or could not be tracked. Also returns `None` for the
    /// entrant `as-is` if a start script saw `LD_PRELOAD` and chose another allocator than in timed
    /// runs. None of this affects the race.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn follow_blocks(
        &self,
        race: &mut Race,
        entrant: usize,
        limit: Duration,
    ) -> Result<Option<Evidence>, Failure> {
        let mut request = self.request(race, entrant);
        request.timeout = Some(request.timeout.map_or(limit, |known| known.min(limit)));
        match self.follow(race, || self.witness.start_following(&request)) {
            Ok(Watched::Well(report)) => {
                let proof = race.proofs()[entrant].as_ref();
                let is_timed = proof.is_some_and(|it| it.served_by == report.proof.served_by);
                let as_is = race.plan().entrants[entrant].as_is;
                Ok(report.evidence.filter(|_| is_timed || !as_is))
            }
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Ok(Watched::Failed(..)) | Err(_) => Ok(None),
        }
    }

    /// Returns the proof that another cell of the collection took with the same program, library
    /// and environment. If there is none, takes one and stores it for later cells.
    fn prove_once(
        &self,
        race: &mut Race,
        request: &Request,
        key: String,
        shared: &mut Shared,
    ) -> Result<Shown, Failure> {
        let words = request.command.len().min(shared.program_words);
        let program = Request {
            command: request.command[..words].to_vec(),
            ..request.clone()
        };
        let program_key = self.witness.key(&program).map_err(witness_failure)?;
        if let Some(proof) = shared.store.find(&program_key) {
            let proof = proof.clone();
            return Ok(Shown::Proof(Proof { key, ..proof }));
        }
        let shown = self.watch(race, request, key)?;
        if let Shown::Proof(proof) = &shown {
            let taken_in = Some(shared.cell.clone());
            let proof = proof.clone();
            let proof = Proof { taken_in, ..proof };
            shared.store.keep(program_key, proof);
        }
        Ok(shown)
    }

    fn request(&self, race: &Race, entrant: usize) -> Request {
        let plan = race.plan();
        let described = &plan.entrants[entrant];
        Request {
            command: watched_command(plan),
            environment: entrant_environment(race.base_environment(), described),
            entrant: described.clone(),
            directory: Some(plan.directory()),
            stdin: plan
                .options
                .stdin
                .clone()
                .filter(|_| plan.options.server.is_none()),
            stdout: None,
            stderr: Some(self.stderr()),
            timeout: plan
                .options
                .timeout
                .map(|limit| Duration::from(limit).saturating_mul(WITNESS_SLOWDOWN)),
            interrupt: Arc::clone(&self.interrupt),
        }
    }

    /// Makes one unmeasured run that counts calls. If only the counting requires `LD_PRELOAD`,
    /// makes another run without that variable, because a start script may use that variable to
    /// choose an allocator.
    fn watch(&self, race: &mut Race, request: &Request, key: String) -> Result<Shown, Failure> {
        let counted = self.follow(race, || self.witness.start(request))?;
        let Watched::Well(report) = counted else {
            return Ok(counted.into());
        };
        let is_let = race.plan().options.allow_different_work;
        if let Some(program) = report.refused_tracer.clone().filter(|_| !is_let) {
            return Ok(Shown::Traces(program));
        }
        let mut proof = Proof {
            key,
            ..report.proof
        };
        // If the first run already shows that another allocator serves the command, a second run
        // would not change the conclusion.
        if request.preloads_nothing() && proof.coverage != Coverage::TooLittle {
            match self.follow(race, || self.witness.start_uncounted(request))? {
                Watched::Well(uncounted) => add_uncounted(&mut proof, &request.entrant, &uncounted),
                failed => return Ok(failed.into()),
            }
        }
        Ok(Shown::Proof(proof))
    }

    /// Makes one unmeasured run, including `--prepare` and the load of a server.
    fn follow(
        &self,
        race: &mut Race,
        start: impl FnOnce() -> Result<Session, WitnessError>,
    ) -> Result<Watched, Failure> {
        let started = Instant::now();
        race.prepare(&self.interrupt)
            .map_err(super::measure_failure)?;
        let session = start().map_err(untraceable)?;
        let plan = race.plan();
        let answered = match &plan.options.server {
            None => true,
            Some(server) => {
                let base = race.base_environment();
                server::load_once(plan, server, base, &session, &self.interrupt)?
            }
        };
        let report = session.finish().map_err(witness_failure)?;
        match answered && ended_well(plan, &report) {
            true => {
                let took = started.elapsed();
                let shortest = self.shortest.get().map_or(took, |known| known.min(took));
                self.shortest.set(Some(shortest));
                Ok(Watched::Well(Box::new(report)))
            }
            false => Ok(Watched::Failed(report.ending, tail(&self.stderr()))),
        }
    }

    fn stderr(&self) -> PathBuf {
        self.scratch.path().join("stderr")
    }
}

/// Returns the baseline's proof for its twin, whose run would be identical; `None` for any other
/// entrant, or if that proof has another key.
fn proven_twin(race: &Race, entrant: usize, key: &str) -> Option<Proof> {
    let plan = race.plan();
    let proof = race.proofs()[plan.baseline()].as_ref()?;
    let twin = plan.entrants[entrant].role == Role::Twin;
    (twin && proof.key == key).then(|| proof.clone())
}

/// Ratio of the time limit of a run under the witness to the time limit of a measured run.
const WITNESS_SLOWDOWN: u32 = 10;

/// Returns the command whose malloc the allocator must serve: the server, if the race has one, or
/// the race's command.
fn watched_command(plan: &Plan) -> Vec<String> {
    match &plan.options.server {
        Some(server) => server::shell(&server.serve),
        None => plan.command.clone(),
    }
}

/// Returns whether a run succeeded. A command must exit with a status that counts as success. A
/// server may exit with any status or be killed by SIGTERM or SIGKILL, because heapdrome ends it by
/// these signals.
fn ended_well(plan: &Plan, report: &Report) -> bool {
    match report.ending {
        Ending::Exited(_) if plan.options.server.is_some() => true,
        Ending::Exited(status) => plan.options.is_success(status),
        Ending::Killed(signal) => {
            plan.options.server.is_some() && [libc::SIGTERM, libc::SIGKILL].contains(&signal)
        }
        Ending::TimedOut | Ending::CheckFailed(_) | Ending::OutputDiffers => false,
    }
}

/// Converts an error of the witness into an interruption, a failure of usage or, for any other
/// error, a failure of the machine.
pub fn witness_failure(error: WitnessError) -> Failure {
    match error {
        WitnessError::Interrupted => Failure::Interrupted,
        WitnessError::EmptyCommand | WitnessError::CommandNotFound { .. } => Failure::usage(error),
        other => Failure::machine(other),
    }
}

/// Converts an error on starting the witness into a failure. If tracing is forbidden, the message
/// suggests a race without a proof.
fn untraceable(error: WitnessError) -> Failure {
    match error {
        WitnessError::PtraceForbidden { .. } => {
            Failure::Machine(format!("{error}; or race without a proof by --unproven"))
        }
        other => witness_failure(other),
    }
}

/// Returns the last lines of a file; empty if the file cannot be read.
fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
