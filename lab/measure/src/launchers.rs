//! Single runs of a plan's command, and of its `--prepare`, `--check` and similar commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use heapdrome_schema::{Ending, Nanoseconds, Plan};

use crate::launcher::{Answer, Launcher, LauncherKind, Outcome, Refusal, Spawn};
use crate::needs::Needs;
use crate::output;
use crate::scratch::Scratch;
use crate::watch::{INTERVAL, Watch};
use crate::{Event, Interrupt, MeasureError, PAD, command, entrant_environment};

/// Method by which a memory run reads the memory of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMethod {
    /// Through a control group if one can be created, otherwise through `/proc`.
    #[default]
    Best,
    /// Through `/proc`, process by process.
    Processes,
}

/// Interval at which a waiting measurer checks the interrupt flag. It is long, because checks
/// disturb the run.
const GLANCE: Duration = Duration::from_millis(100);
/// Time limit of `--cleanup` if the plan has no timeout.
const CLEANUP_TIME: Nanoseconds = Nanoseconds(60_000_000_000);
/// Shell for commands such as `--setup` and `--prepare`.
const SHELL: &str = "/bin/sh";

/// Parameters of one run of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Position of the entrant in the plan.
    pub(crate) entrant: usize,
    /// Length of the value of [`PAD`] in bytes.
    pub(crate) padding: u32,
    /// Whether perf counters are read.
    pub(crate) counters: bool,
}

/// A run of the command that ended, successfully or not.
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) failed: bool,
    /// Last lines of standard error, if the run failed.
    pub(crate) stderr_tail: String,
}

/// Launchers of a plan's commands, with the resources that they need.
pub(crate) struct Launchers {
    /// Launcher of the measured command or server. While it runs, all descendants of this launcher
    /// are the measured tree.
    pub(crate) measured: Launcher,
    /// Launcher of all other commands. Processes that they leave running, such as a daemon of
    /// `--setup`, live until the race ends.
    pub(crate) helper: Launcher,
    pub(crate) scratch: Scratch,
    pub(crate) needs: Needs,
}

impl Launchers {
    /// Starts the launchers for `plan`. Output files will be below `folder`; this call writes
    /// nothing. [`Launchers::find`] or the first run looks up the plan's files.
    pub(crate) fn new(
        launcher: &LauncherKind,
        plan: &Plan,
        folder: &Path,
    ) -> Result<Self, MeasureError> {
        let needs = Needs::of(plan)?;
        let scratch = Scratch::below(folder);
        let measured = Launcher::start(launcher)?;
        Ok(Self {
            measured,
            helper: Launcher::start(launcher)?,
            scratch,
            needs,
        })
    }

    /// Applies a changed plan: derives its needs and looks up its files again.
    pub(crate) fn adopt(&mut self, plan: &Plan) -> Result<(), MeasureError> {
        self.needs = Needs::of(plan)?;
        self.find(plan)
    }

    /// Looks up the working folder and the files of the command, unless already done.
    pub(crate) fn find(&mut self, plan: &Plan) -> Result<(), MeasureError> {
        self.needs.find(plan).map(|_| ())
    }

    /// Runs the shell command of a step that must succeed.
    pub(crate) fn step(
        &mut self,
        step: &'static str,
        text: &str,
        interrupt: &Interrupt,
    ) -> Result<(), MeasureError> {
        let ending = self.shell(text, None, interrupt)?;
        self.must_succeed(step, text, ending)
    }

    /// Runs the `--cleanup` command, even after an interrupt. Kills the command after the plan's
    /// timeout, or after [`CLEANUP_TIME`] if the plan has none.
    pub(crate) fn clean_up(&mut self, plan: &Plan) -> Result<(), MeasureError> {
        let Some(text) = &plan.options.cleanup else {
            return Ok(());
        };
        command::check_directory(&self.needs.directory)?;
        let limit = plan.options.timeout.unwrap_or(CLEANUP_TIME);
        let ending = self.shell(text, Some(limit), &Interrupt::default())?;
        self.must_succeed("--cleanup", text, ending)
    }

    fn must_succeed(
        &self,
        step: &'static str,
        text: &str,
        ending: Ending,
    ) -> Result<(), MeasureError> {
        if ending == Ending::Exited(0) {
            return Ok(());
        }
        let stderr_tail = output::tail(&self.scratch.step_stderr);
        Err(MeasureError::StepFailed {
            step,
            command: text.to_owned(),
            ending,
            stderr_tail,
        })
    }

    /// Runs a shell command without an allocator, and returns the way in which it ended.
    pub(crate) fn shell(
        &mut self,
        text: &str,
        timeout: Option<Nanoseconds>,
        interrupt: &Interrupt,
    ) -> Result<Ending, MeasureError> {
        let mut spawn =
            self.shell_spawn(text, &self.needs.base.variables, &self.scratch.step_stderr);
        spawn.timeout = timeout;
        match self.helper.run(spawn, interrupt)? {
            Answer::Ended(outcome) => Ok(outcome.ending),
            Answer::Refused(refusal) => Err(refused(SHELL, &[], refusal)),
        }
    }

    /// Returns a request to run the shell command `text`, without pinning or a time limit, and with
    /// its standard output discarded.
    pub(crate) fn shell_spawn(
        &self,
        text: &str,
        variables: &BTreeMap<OsString, OsString>,
        stderr: &Path,
    ) -> Spawn {
        Spawn {
            program: SHELL.into(),
            name: "sh".into(),
            arguments: vec!["-c".into(), text.into()],
            environment: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory: (&self.needs.directory).into(),
            stdin: "/dev/null".into(),
            stdout: "/dev/null".into(),
            stderr: stderr.into(),
            pin: Vec::new(),
            timeout: None,
            counters: false,
            cgroup: None,
            sweep: false,
            add_orphans: false,
        }
    }

    /// Returns a request to run the plan's command with `variables` as its environment, without
    /// pinning. Keeps the standard output if it is compared or searched for metrics.
    pub(crate) fn command_spawn(
        &mut self,
        plan: &Plan,
        variables: &BTreeMap<OsString, OsString>,
    ) -> Result<Spawn, MeasureError> {
        let files = self.needs.find(plan)?;
        let keeps_output = plan.options.compare_output || !self.needs.patterns.is_empty();
        let stdout = if keeps_output {
            &self.scratch.stdout
        } else {
            Path::new("/dev/null")
        };
        Ok(Spawn {
            program: (&files.program).into(),
            name: plan.command.first().map_or("", String::as_str).into(),
            arguments: plan.command.iter().skip(1).map(Into::into).collect(),
            stdin: (&files.stdin).into(),
            stdout: stdout.into(),
            timeout: plan.options.timeout,
            ..self.shell_spawn("", variables, &self.scratch.stderr)
        })
    }

    /// Returns the environment of one run under an entrant, including [`PAD`].
    pub(crate) fn variables(&self, plan: &Plan, attempt: Attempt) -> BTreeMap<OsString, OsString> {
        let mut variables = match plan.entrants.get(attempt.entrant) {
            Some(entrant) => entrant_environment(&self.needs.base, entrant),
            None => self.needs.base.variables.clone(),
        };
        variables.insert(PAD.into(), "x".repeat(attempt.padding as usize).into());
        variables
    }

    /// Runs the command, or the server with the command as its load.
    pub(crate) fn attempt(
        &mut self,
        plan: &Plan,
        attempt: Attempt,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Finished, MeasureError> {
        if interrupt.load(Ordering::Relaxed) {
            return Err(MeasureError::Interrupted);
        }
        if let Some(server) = &plan.options.server {
            return self.serve(plan, server, attempt, watch, interrupt);
        }
        let variables = self.variables(plan, attempt);
        let spawn = Spawn {
            pin: plan.options.pin.clone(),
            counters: attempt.counters,
            sweep: true,
            ..self.command_spawn(plan, &variables)?
        };
        let outcome = match self.measure(spawn, watch, interrupt)? {
            Answer::Ended(outcome) => *outcome,
            Answer::Refused(refusal) => {
                return Err(refused(&plan.command[0], &plan.options.pin, refusal));
            }
        };
        let failed = !is_success(plan, outcome.ending);
        let stderr_tail = if failed {
            output::tail(&self.scratch.stderr)
        } else {
            String::new()
        };
        Ok(Finished {
            outcome,
            failed,
            stderr_tail,
        })
    }

    /// Starts `spawn` as the measured process, and waits for its end. If there is a watch, reads
    /// the tree's memory while waiting.
    fn measure(
        &mut self,
        spawn: Spawn,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Answer, MeasureError> {
        self.begin_watched(spawn, watch)?;
        loop {
            if let Some(answer) = self.measured.poll(patience(watch))? {
                return Ok(answer);
            }
            look(watch);
            self.measured.end_if(interrupt)?;
        }
    }

    /// Returns the metrics in the output of the command's last run. Reports missing ones to
    /// `events`, except the plan's optional figures.
    pub(crate) fn metrics(
        &self,
        plan: &Plan,
        attempt: Attempt,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<(String, f64)>, MeasureError> {
        if self.needs.patterns.is_empty() {
            return Ok(Vec::new());
        }
        let read = |path: &Path| {
            let failed = |source| MeasureError::Scratch {
                path: path.to_owned(),
                source,
            };
            std::fs::read(path).map_err(failed)
        };
        let mut text = read(&self.scratch.stdout)?;
        text.push(b'\n');
        text.extend(read(&self.scratch.stderr)?);
        let text = String::from_utf8_lossy(&text);
        let mut found = Vec::new();
        for pattern in &self.needs.patterns {
            match pattern.find(&text) {
                Some(number) => found.push((pattern.name.clone(), number)),
                None if plan.options.figures.contains(&pattern.name) => {}
                None => events(Event::MetricMissing {
                    entrant: attempt.entrant,
                    name: &pattern.name,
                }),
            }
        }
        Ok(found)
    }

    /// Returns the hash of the last run's standard output with masked ranges replaced; `None` if
    /// outputs are not compared.
    pub(crate) fn output_hash(&self, plan: &Plan) -> Result<Option<String>, MeasureError> {
        if !plan.options.compare_output {
            return Ok(None);
        }
        let path = &self.scratch.stdout;
        let failed = |source| MeasureError::Scratch {
            path: path.clone(),
            source,
        };
        self.needs.masks.hash(path).map(Some).map_err(failed)
    }

    /// Creates a watch over the measured tree. With [`MemoryMethod::Best`], the watch uses a
    /// control group if a trial shows that processes can be started in one, otherwise `/proc`.
    pub(crate) fn watch(
        &mut self,
        method: MemoryMethod,
        interrupt: &Interrupt,
    ) -> Result<Watch, MeasureError> {
        let root = self.measured.pid();
        let watch = Watch::new(root, method == MemoryMethod::Best);
        let Some(files) = watch.files() else {
            return Ok(watch);
        };
        let mut trial =
            self.shell_spawn(":", &self.needs.base.variables, &self.scratch.step_stderr);
        trial.cgroup = Some(files);
        match self.measured.run(trial, interrupt)? {
            Answer::Ended(_) => Ok(watch),
            Answer::Refused(_) => Ok(Watch::new(root, false)),
        }
    }

    /// Starts `spawn` as the measured process, in the control group of `watch` if it has one.
    pub(crate) fn begin_watched(
        &mut self,
        spawn: Spawn,
        watch: &mut Option<Watch>,
    ) -> Result<(), MeasureError> {
        let cgroup = watch.as_ref().and_then(Watch::files);
        self.measured.begin(Spawn { cgroup, ..spawn })
    }
}

/// Returns the maximum time to wait for a process before memory or the interrupt flag is checked
/// again.
pub(crate) fn patience(watch: &Option<Watch>) -> Duration {
    if watch.is_some() { INTERVAL } else { GLANCE }
}

/// Reads the memory, if there is a watch.
pub(crate) fn look(watch: &mut Option<Watch>) {
    if let Some(watch) = watch {
        watch.sample();
    }
}

/// Returns whether the plan counts this ending as success.
pub(crate) fn is_success(plan: &Plan, ending: Ending) -> bool {
    matches!(ending, Ending::Exited(status) if plan.options.is_success(status))
}

/// Returns the error for a process that could not be started.
pub(crate) fn refused(command: &str, cpus: &[usize], refusal: Refusal) -> MeasureError {
    match refusal {
        Refusal::Program(reason) => MeasureError::NotExecutable {
            command: command.to_owned(),
            reason,
        },
        Refusal::Stream { path, error } => MeasureError::Unusable {
            what: "the standard stream",
            path: path.to_path(),
            source: std::io::Error::from_raw_os_error(error),
        },
        Refusal::Pin(reason) => MeasureError::CannotPin {
            cpus: cpus.to_vec(),
            reason,
        },
        Refusal::Cgroup(reason) => MeasureError::Launcher {
            what: "cannot enter its control group",
            reason,
        },
    }
}
