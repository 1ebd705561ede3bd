//! The lab, which runs each job in a child process, under a limit if required, and reads the
//! child's report.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heapdrome_schema::{Bytes, Entrant, Instructions, Job, Limit, PagingReport};

use crate::{Attempt, Enclosure, Error, Ledger, Mechanism, Seen, free_swap, preload, process};

/// Limit for trying the mechanisms.
const TRIAL: Limit = Limit {
    memory: Bytes::from_mib(64),
    swap: Bytes(0),
    processors: None,
};
/// Time that a child may take beyond its expected time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Minimum number of bytes that a child is expected to fill per second, even if it swaps.
const FILLED_PER_SECOND: Bytes = Bytes::from_mib(16);

/// Environment in which all experiments run.
pub struct Lab {
    /// The executable that runs jobs.
    pub child: PathBuf,
    /// The ledger of the items that the lab makes.
    pub ledger: Arc<Ledger>,
    /// Flag that is set when the user wants to stop.
    pub interrupt: Arc<AtomicBool>,
}

impl Lab {
    /// Tries every mechanism: a child process reads back the small limit that the mechanism sets.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn attempts(&self) -> Result<Vec<Attempt>, Error> {
        Mechanism::ALL
            .iter()
            .map(|mechanism| self.attempt(*mechanism))
            .collect()
    }

    /// Returns the first mechanism that works.
    ///
    /// # Errors
    /// When none works, or the user interrupts. If none works, the error is one line with the
    /// reason for each mechanism.
    pub fn mechanism(&self) -> Result<Mechanism, Error> {
        self.first_of(&Mechanism::ALL)
    }

    /// Returns the first mechanism that works and whose groups the lab creates itself. The lab can
    /// read the files of such groups and end all processes in them.
    ///
    /// # Errors
    /// When none works, or the user interrupts. If none works, the error is one line with the
    /// reason for each mechanism.
    pub fn own_groups(&self) -> Result<Mechanism, Error> {
        self.first_of(&[Mechanism::CgroupTwo, Mechanism::CgroupOne])
    }

    fn first_of(&self, mechanisms: &[Mechanism]) -> Result<Mechanism, Error> {
        let mut reasons = Vec::new();
        for mechanism in mechanisms {
            match self.attempt(*mechanism)?.reason {
                None => return Ok(*mechanism),
                Some(reason) => reasons.push(format!("{}: {reason}", mechanism.name())),
            }
        }
        Err(Error::missing(
            format!("no memory limit can be made ({})", reasons.join("; ")),
            "run the same command with sudo",
        ))
    }

    fn attempt(&self, mechanism: Mechanism) -> Result<Attempt, Error> {
        let (reason, fix) = match self.try_limit(mechanism, TRIAL) {
            Ok(_) => (None, None),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(Error::Missing { missing, fix }) => (Some(missing), Some(fix)),
            Err(error) => (Some(error.to_string()), None),
        };
        Ok(Attempt {
            mechanism,
            reason,
            fix,
        })
    }

    /// Checks whether a quota of this number of processors can be set.
    ///
    /// # Errors
    /// When the quota cannot be set, or the user interrupts. The error is one line.
    pub fn try_quota(&self, mechanism: Mechanism, processors: f64) -> Result<(), Error> {
        let limit = Limit {
            processors: Some(processors),
            ..TRIAL
        };
        self.try_limit(mechanism, limit)
    }

    /// Runs a child that reads back its limit.
    fn try_limit(&self, mechanism: Mechanism, limit: Limit) -> Result<(), Error> {
        let made = Enclosure::make(mechanism, limit, &self.ledger)?;
        self.run(&Job::Probe, Some(&made), None).map(|_| ())
    }

    /// Runs a job in its own child process, under the given limit and allocator, if any.
    ///
    /// # Errors
    /// When the child fails, when its limit differs from the requested one, when another object
    /// serves its `malloc`, or when the user interrupts.
    pub fn run(
        &self,
        job: &Job,
        enclosure: Option<&Enclosure>,
        allocator: Option<&Entrant>,
    ) -> Result<PagingReport, Error> {
        let command = self.command(job, enclosure, allocator)?;
        let output = process::run(command, patience(job), &self.interrupt)?;
        // The signal that set the flag, for example the hangup of a terminal, may have ended the
        // child as well. The lab may notice the child's end before the flag. Relaxed: the flag
        // guards no other data.
        if !output.status.success() && self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if !output.status.success() {
            return Err(failure(&output, enclosure));
        }
        let mut report: PagingReport = serde_json::from_slice(&output.out)
            .map_err(|error| Error::Child(format!("gave an invalid answer: {error}")))?;
        // The published crate writes its warnings to standard error.
        let lines = output.err.lines().count() as f64;
        report.figures.insert("stderr_lines".to_owned(), lines);
        let seen = Seen {
            memory: report.memory_limit,
            swap: report.swap_limit,
            processors: report.processors,
        };
        if let Some(made) = enclosure {
            made.check(seen)?;
            // The lab reads these counts after the child has ended, so they cover its whole life.
            let counted = made.tally().map(|tally| tally.figures());
            report.figures.extend(counted.unwrap_or_default());
        }
        if let Some(allocator) = allocator {
            preload::check(allocator, &report)?;
        }
        Ok(report)
    }

    fn command(
        &self,
        job: &Job,
        enclosure: Option<&Enclosure>,
        allocator: Option<&Entrant>,
    ) -> Result<Command, Error> {
        let instructions = Instructions {
            join: enclosure.map(|made| made.join.clone()).unwrap_or_default(),
            job: job.clone(),
        };
        let text = serde_json::to_string(&instructions)
            .map_err(|error| Error::Child(format!("cannot be given its instructions: {error}")))?;
        let mut words: Vec<OsString> = enclosure.map_or_else(Vec::new, |made| made.prefix.clone());
        let variables = allocator.map(Entrant::environment).unwrap_or_default();
        if !variables.is_empty() {
            // The variables are set by `env` in the child. In the environment of the command they
            // would affect systemd-run, too.
            words.push("env".into());
            let word = |(name, value)| OsString::from(format!("{name}={value}"));
            words.extend(variables.into_iter().map(word));
        }
        words.extend([self.child.clone().into(), text.into()]);
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        Ok(command)
    }
}

/// Returns the reason why a child failed.
fn failure(output: &process::Output, enclosure: Option<&Enclosure>) -> Error {
    let tally = enclosure.and_then(Enclosure::tally);
    let counted = tally.and_then(|tally| tally.oom_kills);
    let killed = output.status.signal() == Some(libc::SIGKILL);
    // The lab cannot count kills in a group of systemd. A SIGKILL there is most likely an OOM kill.
    let for_memory = counted.map_or(killed && enclosure.is_some(), |kills| kills > 0);
    if !for_memory {
        return Error::Child(process::ending(output));
    }
    Error::OutOfMemory {
        free_swap: free_swap(),
        fix: "raise the limit or add swap (--swap file:8G)",
    }
}

/// Returns the time limit of a child.
fn patience(job: &Job) -> Duration {
    let fill = |total: Bytes| Duration::from_secs(total.0 / FILLED_PER_SECOND.0);
    let usual = match job {
        Job::Probe => Duration::ZERO,
        Job::Throughput(one) => one.warm_up.saturating_add(one.seconds),
        Job::Read(one) => {
            let measured = one.warm_up.saturating_add(one.seconds);
            fill(one.total).saturating_add(measured)
        }
        Job::Recycle(one) => {
            // For each number of threads, the warm-up takes at most the measuring time.
            let measured = one.seconds.saturating_mul(1 + 2 * one.threads.len() as u32);
            fill(one.total * 2).saturating_add(measured)
        }
        // A thread takes at least one region of each of five sizes. The largest size is 32 MiB.
        Job::Burst(one) => fill(one.each.max(Bytes::from_mib(32)) * 5 * one.threads as u64),
    };
    PATIENCE.saturating_add(usual)
}
