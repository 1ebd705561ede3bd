//! The lab: children, their limits, and what they say.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{
    Attempt, Enclosure, Error, Instructions, Job, Ledger, Limit, Mechanism, Report, Seen, process,
};

/// What the limit is that mechanisms are tried with.
const TRIAL: Limit = Limit {
    memory: 64 << 20,
    swap: 0,
    processors: None,
};
/// How long a child may take beside what it is told to measure.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many bytes a child fills in a second at the least, with swap behind them.
const FILLED_PER_SECOND: f64 = (16 << 20) as f64;

/// Everything that experiments need.
pub struct Lab {
    /// The executable that runs jobs.
    pub child: PathBuf,
    /// Where things that are made are written down.
    pub ledger: Arc<Ledger>,
    /// Raised when someone wants to stop.
    pub interrupt: Arc<AtomicBool>,
    /// Variables that children get, such as `LD_PRELOAD`.
    pub environment: Vec<(OsString, OsString)>,
}

impl Lab {
    /// Tries every mechanism, by running a child that reads its limit back.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn attempts(&self) -> Result<Vec<Attempt>, Error> {
        Mechanism::ALL
            .iter()
            .map(|mechanism| self.attempt(*mechanism))
            .collect()
    }

    /// The first mechanism that works.
    ///
    /// # Errors
    /// When none does: one line with the reason of each.
    pub fn mechanism(&self) -> Result<Mechanism, Error> {
        let mut reasons = Vec::new();
        for mechanism in Mechanism::ALL {
            match self.attempt(mechanism)?.reason {
                None => return Ok(mechanism),
                Some(reason) => reasons.push(format!("{}: {reason}", mechanism.name())),
            }
        }
        Err(Error::missing(
            format!("no memory limit can be made ({})", reasons.join("; ")),
            "run the same command with sudo",
        ))
    }

    fn attempt(&self, mechanism: Mechanism) -> Result<Attempt, Error> {
        let made = Enclosure::make(mechanism, TRIAL, &self.ledger);
        let (reason, mend) = match made.and_then(|made| self.run(&Job::Probe, Some(&made))) {
            Ok(_) => (None, None),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(Error::Missing { missing, mend }) => (Some(missing), Some(mend)),
            Err(error) => (Some(error.to_string()), None),
        };
        Ok(Attempt {
            mechanism,
            reason,
            mend,
        })
    }

    /// Runs a job in a child of its own, under a limit if there is one.
    ///
    /// # Errors
    /// When the child fails, or does not read back the limit that was made for it.
    pub fn run(&self, job: &Job, enclosure: Option<&Enclosure>) -> Result<Report, Error> {
        let instructions = Instructions {
            join: enclosure.map(|made| made.join.clone()).unwrap_or_default(),
            job: job.clone(),
        };
        let text = serde_json::to_string(&instructions)
            .map_err(|error| Error::Child(format!("cannot be told what to do: {error}")))?;
        let prefix = enclosure.map_or(&[][..], |made| &made.prefix[..]);
        let mut words = prefix
            .iter()
            .cloned()
            .chain([self.child.clone().into(), text.into()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        // What is preloaded is for the child; systemd-run would get it too, and pass it on.
        command.envs(self.environment.iter().cloned());
        let output = process::run(command, patience(job), &self.interrupt)?;
        // A terminal's Ctrl-C reaches the child too, and may end it first. Relaxed: the flag stands
        // for itself.
        if !output.status.success() && self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if !output.status.success() {
            return Err(Error::Child(process::ending(&output, enclosure.is_some())));
        }
        let report: Report = serde_json::from_slice(&output.out)
            .map_err(|error| Error::Child(format!("answers nothing that can be read: {error}")))?;
        let seen = Seen {
            memory: report.memory_limit,
            swap: report.swap_limit,
        };
        match enclosure {
            Some(made) if !made.holds(seen) => Err(Error::Child(format!(
                "does not read the limit that was made: it sees {seen:?}"
            ))),
            _ => Ok(report),
        }
    }
}

/// For how long a child may run.
fn patience(job: &Job) -> Duration {
    let fill = |total: u64| total as f64 / FILLED_PER_SECOND;
    let seconds = match job {
        Job::Probe => 0.0,
        Job::Throughput(one) => one.warm_up + one.seconds,
        Job::Read(one) => fill(one.total) + one.warm_up + one.seconds,
        Job::Recycle(one) => 2.0 * fill(one.total) + 2.0 * one.seconds,
    };
    PATIENCE + Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
