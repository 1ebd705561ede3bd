//! A race: its plan, its journal, and its runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heapdrome_schema::{Evidence, JournalLine, Machine, MemoryRun, Plan, Proof, Run};

use crate::journal::{self, Journal, JournalError};
use crate::launcher::{LauncherKind, LauncherProgram};
use crate::launchers::{Launchers, MemoryMethod};
use crate::library::Libraries;
use crate::state::State;
use crate::{BaseEnvironment, Failure, Interrupt, MeasureError};

/// A race in progress. Dropping it kills all processes that it started.
pub struct Race {
    folder: PathBuf,
    pub(crate) journal: Journal,
    pub(crate) state: State,
    pub(crate) launchers: Launchers,
    pub(crate) libraries: Vec<Libraries>,
    pub(crate) memory_method: MemoryMethod,
}

impl Race {
    /// Starts a race in `folder`, which is created if needed and must not contain a race.
    ///
    /// # Errors
    /// Returns an error if the plan cannot be run (for example because its command is not found),
    /// if the folder contains a race or cannot be written, or if the launcher cannot be started.
    pub fn start(plan: Plan, machine: Machine, folder: &Path) -> Result<Self, MeasureError> {
        Self::start_with(
            &LauncherProgram::of_this_executable(),
            plan,
            machine,
            folder,
        )
    }

    /// Starts a race like [`Race::start`], but with the given launcher.
    ///
    /// # Errors
    /// See [`Race::start`].
    pub fn start_with(
        launcher: impl Into<LauncherKind>,
        plan: Plan,
        machine: Machine,
        folder: &Path,
    ) -> Result<Self, MeasureError> {
        let folder = absolute(folder)?;
        // All errors of the plan are reported before anything is written.
        let mut launchers = Launchers::new(&launcher.into(), &plan, &folder)?;
        launchers.find(&plan)?;
        let first = JournalLine::Plan {
            schema: journal::SCHEMA,
            plan: Box::new(plan.clone()),
            machine: Box::new(machine.clone()),
        };
        let journal = Journal::create(&folder, &first)?;
        Self::assemble(folder, journal, State::new(plan, machine), launchers)
    }

    /// Resumes the race in `folder` at the end of its journal. The command and its working folder
    /// need not exist before the first call that runs a command.
    ///
    /// # Errors
    /// Returns an error if the journal is missing or damaged, was written by a newer heapdrome, or
    /// is in use. Also returns an error if a metric is invalid, the folder cannot be written, or
    /// the launcher cannot be started.
    pub fn resume(folder: &Path) -> Result<Self, MeasureError> {
        Self::resume_with(&LauncherProgram::of_this_executable(), folder)
    }

    /// Resumes a race like [`Race::resume`], but with the given launcher.
    ///
    /// # Errors
    /// See [`Race::resume`].
    pub fn resume_with(
        launcher: impl Into<LauncherKind>,
        folder: &Path,
    ) -> Result<Self, MeasureError> {
        let folder = absolute(folder)?;
        let (journal, lines) = Journal::open(&folder)?;
        let mut lines = lines.into_iter();
        let Some(JournalLine::Plan { plan, machine, .. }) = lines.next() else {
            let path = folder.join(journal::FILE_NAME);
            let reason = "there is no plan".to_owned();
            return Err(JournalError::Damaged {
                path,
                line: 1,
                reason,
            }
            .into());
        };
        let mut state = State::new(*plan, *machine);
        lines.for_each(|line| state.apply(line));
        let launchers = Launchers::new(&launcher.into(), &state.plan, &folder)?;
        Self::assemble(folder, journal, state, launchers)
    }

    fn assemble(
        folder: PathBuf,
        journal: Journal,
        state: State,
        mut launchers: Launchers,
    ) -> Result<Self, MeasureError> {
        launchers.scratch.make()?;
        let libraries = libraries_of(&state.plan);
        let memory_method = MemoryMethod::default();
        Ok(Self {
            folder,
            journal,
            state,
            launchers,
            libraries,
            memory_method,
        })
    }

    /// Writes a line to the journal, and returns once it is on disk. Runs, memory runs, and the
    /// failures of both are recorded automatically. The caller records all other lines. A plan
    /// replaces the previous one. Entrants that the journal mentions must keep their positions.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written, or a new plan cannot be run.
    pub fn record(&mut self, line: JournalLine) -> Result<(), MeasureError> {
        if let JournalLine::Plan { plan, .. } = &line {
            self.launchers.adopt(plan)?;
            self.libraries = libraries_of(plan);
        }
        self.journal.append(&line)?;
        self.state.apply(line);
        Ok(())
    }

    /// Runs the `--setup` command, if there is one.
    ///
    /// # Errors
    /// Returns an error if the command fails or is interrupted, or if a file or folder of the
    /// race's command is missing.
    pub fn setup(&mut self, interrupt: &Interrupt) -> Result<(), MeasureError> {
        self.launchers.find(&self.state.plan)?;
        match &self.state.plan.options.setup {
            Some(text) => self.launchers.step("--setup", text, interrupt),
            None => Ok(()),
        }
    }

    /// Runs the `--prepare` command, if there is one. Runs of the race call this automatically.
    /// Callers that run the race's command in another way, such as under the witness, must call
    /// this first.
    ///
    /// # Errors
    /// Returns an error if the command fails or is interrupted, or if a file or folder of the
    /// race's command is missing.
    pub fn prepare(&mut self, interrupt: &Interrupt) -> Result<(), MeasureError> {
        self.launchers.find(&self.state.plan)?;
        match &self.state.plan.options.prepare {
            Some(text) => self.launchers.step("--prepare", text, interrupt),
            None => Ok(()),
        }
    }

    /// Runs the `--cleanup` command, if there is one, even after an interrupt. A command that does
    /// not end is killed after the plan's timeout, or after one minute if the plan has none.
    ///
    /// # Errors
    /// Returns an error if the command fails, or the working folder is missing.
    pub fn cleanup(&mut self) -> Result<(), MeasureError> {
        self.launchers.clean_up(&self.state.plan)
    }

    /// Sets the method by which later memory runs read memory.
    pub fn set_memory_method(&mut self, method: MemoryMethod) {
        self.memory_method = method;
    }

    /// Accepts the current content of the library of `entrant`.
    ///
    /// # Errors
    /// Returns an error if the library cannot be read, or a preloaded library is missing.
    pub fn accept_library(&mut self, entrant: usize) -> Result<(), MeasureError> {
        self.libraries
            .get_mut(entrant)
            .map_or(Ok(()), Libraries::accept)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.state.plan
    }

    /// Returns the machine on which the race was started.
    pub fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// Returns the race's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the environment of commands without an allocator, and the names of the variables
    /// that were removed from it.
    pub fn base_environment(&self) -> &BaseEnvironment {
        &self.launchers.needs.base
    }

    /// Returns the successful runs in the order in which they ended. Failed runs are in
    /// [`Race::failures`].
    pub fn runs(&self) -> &[Run] {
        &self.state.runs
    }

    /// Returns the latest proof of each entrant, indexed by the entrant's position in the plan.
    pub fn proofs(&self) -> &[Option<Proof>] {
        &self.state.proofs
    }

    /// Returns the findings of each entrant's tracked run, indexed by the entrant's position in the
    /// plan.
    pub fn evidence(&self) -> &[Option<Evidence>] {
        &self.state.evidence
    }

    /// Returns the memory runs.
    pub fn memory_runs(&self) -> &[MemoryRun] {
        &self.state.memory_runs
    }

    /// Returns the entrants that left the race, in the order of their failures.
    pub fn failures(&self) -> &[Failure] {
        &self.state.failures
    }

    /// Returns the number of rounds of each entrant that stopped because all its comparisons were
    /// decided. The key is the entrant's position in the plan.
    pub fn decided(&self) -> &BTreeMap<usize, u32> {
        &self.state.decided
    }

    /// Returns whether the runs of `entrant` count: it has not failed, and its latest proof, if
    /// any, does not show [`Coverage::TooLittle`](heapdrome_schema::Coverage::TooLittle).
    pub fn counts(&self, entrant: usize) -> bool {
        self.state.counts(entrant)
    }

    /// Returns whether `entrant` still races: its runs count ([`Race::counts`]), and it is not
    /// decided.
    pub fn is_racing(&self, entrant: usize) -> bool {
        self.state.is_racing(entrant)
    }

    /// Returns the number of rounds that every entrant still in the race has run; 0 if no entrant
    /// is racing.
    pub fn complete_rounds(&self) -> u32 {
        self.state.complete_rounds()
    }

    /// Returns the journal's remarks for a reader of the result.
    pub fn remarks(&self) -> &[String] {
        &self.state.remarks
    }

    /// Returns the reason for the end of the race, if its journal contains one.
    pub fn finished(&self) -> Option<&str> {
        self.state.finished.as_deref()
    }
}

/// Makes the folder's path absolute, because commands run in other folders.
fn absolute(folder: &Path) -> Result<PathBuf, MeasureError> {
    std::path::absolute(folder).map_err(|source| MeasureError::Scratch {
        path: folder.to_owned(),
        source,
    })
}

fn libraries_of(plan: &Plan) -> Vec<Libraries> {
    let entrants = plan.entrants.iter().enumerate();
    entrants
        .map(|(place, entrant)| Libraries::of(place, entrant))
        .collect()
}
