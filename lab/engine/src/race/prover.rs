//! The runs under the witness: who serves malloc, before anything is timed.

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

/// Takes proofs.
pub struct Prover {
    witness: Witness,
    scratch: tempfile::TempDir,
    interrupt: Arc<AtomicBool>,
    shortest: Cell<Option<Duration>>,
}

/// What a run under the witness showed of one entrant.
pub enum Shown {
    /// A proof.
    Proof(Proof),
    /// This program traces others, which the kernel refused: the run did other work than timed ones
    /// do.
    Traces(String),
    /// The command failed under this entrant, so that it proves nothing.
    Failed {
        /// How it ended.
        ending: Ending,
        /// The last lines of its standard error.
        stderr_tail: String,
    },
}

/// Outcome of one run.
enum Watched {
    /// It ended as it should.
    Well(Box<Report>),
    /// It did not; the last lines of its standard error.
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

/// Lines of standard error that are kept of a failing run.
const TAIL_LINES: usize = 10;

impl Prover {
    /// A prover whose witness may use `folder` where there is no better place.
    ///
    /// # Errors
    /// When no folder suits.
    pub fn new(folder: &Path, interrupt: Arc<AtomicBool>) -> Result<Self, Failure> {
        Ok(Self {
            witness: Witness::new(folder).map_err(Failure::machine)?,
            scratch: tempfile::tempdir().map_err(Failure::machine)?,
            interrupt,
            shortest: Cell::new(None),
        })
    }

    /// The shortest run under the witness so far, `--prepare` included: a little longer than one
    /// without.
    pub fn shortest_run(&self) -> Option<Duration> {
        self.shortest.get()
    }

    /// Whether the latest proof of `entrant` still holds: the same libraries, executable, command
    /// and environment.
    ///
    /// # Errors
    /// When one of them can no longer be read.
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

    /// Proves `entrant` for the command of `race`, and puts the proof into the journal.
    ///
    /// # Errors
    /// When the command cannot be followed, or the journal cannot be written.
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
                during: "the run under the witness".to_owned(),
                stderr_tail: stderr_tail.clone(),
            },
            Shown::Traces(_) => return Ok(shown),
        };
        race.record(line).map_err(Failure::machine)?;
        Ok(shown)
    }

    /// Runs the command under `entrant` once more and returns what was counted, which no journal
    /// keeps; `None` where the command failed.
    ///
    /// # Errors
    /// When the command cannot be followed.
    pub fn count(&self, race: &mut Race, entrant: usize) -> Result<Option<Proof>, Failure> {
        let request = self.request(race, entrant);
        match self.follow(race, || self.witness.start(&request))? {
            Watched::Well(report) => Ok(Some(report.proof)),
            Watched::Failed(..) => Ok(None),
        }
    }

    /// Runs the command under `entrant` once more, for at most `limit`, and follows every block.
    /// `None` where it failed or could not be followed, which says nothing of the race, and where a
    /// start script chose another allocator than in timed runs, since `LD_PRELOAD` was set.
    ///
    /// # Errors
    /// When it was interrupted.
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

    /// The proof that another cell of the collection has taken with the same program, library and
    /// environment; or one that is taken here, and kept for the cells to come.
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

    /// One unmeasured run that is counted; and another that is not, where `LD_PRELOAD` is set in
    /// the first only: a start script may choose an allocator by that.
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
        // Nothing can displace the allocator of a command that it does not serve anyhow.
        if request.preloads_nothing() && proof.coverage != Coverage::TooLittle {
            match self.follow(race, || self.witness.start_uncounted(request))? {
                Watched::Well(uncounted) => add_uncounted(&mut proof, &request.entrant, &uncounted),
                failed => return Ok(failed.into()),
            }
        }
        Ok(Shown::Proof(proof))
    }

    /// One unmeasured run, from `--prepare` to its end.
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

/// The baseline's proof serves for its twin: the same run would be watched twice.
fn proven_twin(race: &Race, entrant: usize, key: &str) -> Option<Proof> {
    let plan = race.plan();
    let proof = race.proofs()[plan.baseline()].as_ref()?;
    let twin = plan.entrants[entrant].role == Role::Twin;
    (twin && proof.key == key).then(|| proof.clone())
}

/// A run under the witness may take this many times as long as a measured one.
const WITNESS_SLOWDOWN: u32 = 10;

/// What runs under the allocator: the command, or the server that it loads.
fn watched_command(plan: &Plan) -> Vec<String> {
    match &plan.options.server {
        Some(server) => server::shell(&server.serve),
        None => plan.command.clone(),
    }
}

/// A server is ended by a signal of ours, which it may answer with any exit status; a command must
/// end with a status that counts as success.
fn ended_well(plan: &Plan, report: &Report) -> bool {
    match report.ending {
        Ending::Exited(_) if plan.options.server.is_some() => true,
        Ending::Exited(status) => plan.options.success.contains(&status),
        Ending::Killed(signal) => {
            plan.options.server.is_some() && [libc::SIGTERM, libc::SIGKILL].contains(&signal)
        }
        Ending::TimedOut | Ending::CheckFailed(_) | Ending::OutputDiffers => false,
    }
}

/// The failure that an error of the witness is.
pub fn witness_failure(error: WitnessError) -> Failure {
    match error {
        WitnessError::Interrupted => Failure::Interrupted,
        WitnessError::EmptyCommand | WitnessError::CommandNotFound { .. } => Failure::usage(error),
        other => Failure::machine(other),
    }
}

/// The failure to start a run under the witness. A race can do without, where nothing may be
/// traced.
fn untraceable(error: WitnessError) -> Failure {
    match error {
        WitnessError::PtraceForbidden { .. } => {
            Failure::Machine(format!("{error}; or race without a proof by --unproven"))
        }
        other => witness_failure(other),
    }
}

/// The last lines of a file that may not exist.
fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
