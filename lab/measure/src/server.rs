//! Runs of a server under an allocator, while the plan's command sends it load.

use std::time::{Duration, Instant};

use heapdrome_schema::{Ending, Nanoseconds, Plan, Server};

use crate::launcher::{Answer, Outcome, Spawn, Stop};
use crate::launchers::{Attempt, Finished, Launchers, is_success, look, patience, refused};
use crate::output;
use crate::watch::{INTERVAL, Watch};
use crate::{Interrupt, MeasureError};

/// Time limit for the end of a server after SIGTERM.
const END_GRACE: Nanoseconds = Nanoseconds(5_000_000_000);
/// Interval between two checks of the server's readiness.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// State of a server before its load starts.
enum Readiness {
    Ready,
    Died(Box<Outcome>),
    Late,
}

enum Load {
    Ended(Box<Outcome>),
    /// The server ended before its load did.
    Orphaned(Box<Outcome>),
}

impl Launchers {
    /// Starts the server, waits until it is ready, runs the load without the allocator, and ends
    /// the server. The wall time is the load's; all other costs are the server's.
    pub(crate) fn serve(
        &mut self,
        plan: &Plan,
        server: &Server,
        attempt: Attempt,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Finished, MeasureError> {
        let variables = self.variables(plan, attempt);
        let spawn = Spawn {
            pin: plan.options.pin.clone(),
            add_orphans: true,
            sweep: true,
            ..self.shell_spawn(&server.serve, &variables, &self.scratch.server_stderr)
        };
        self.begin_watched(spawn, watch)?;
        let result = self.load(plan, server, watch, interrupt);
        if result.is_err() {
            // The first error is more informative than an error from killing the rest.
            let _ = self.helper.kill();
            let _ = self.measured.kill();
        }
        result
    }

    fn load(
        &mut self,
        plan: &Plan,
        server: &Server,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Finished, MeasureError> {
        match self.until_ready(plan, server, watch, interrupt)? {
            Readiness::Ready => {}
            Readiness::Died(outcome) => {
                return Ok(self.failed(*outcome, "the server ended before it was ready"));
            }
            Readiness::Late => {
                let mut outcome = self.end_server(plan, Stop::Kill)?;
                outcome.ending = Ending::TimedOut;
                return Ok(self.failed(outcome, "the server was not ready in time"));
            }
        }
        let load = match self.run_load(plan, watch, interrupt)? {
            Load::Ended(load) => *load,
            Load::Orphaned(outcome) => {
                return Ok(self.failed(*outcome, "the server ended before its load did"));
            }
        };
        if let Some(outcome) = self.rest(plan, server, watch, interrupt)? {
            return Ok(self.failed(outcome, "the server ended while it was idle"));
        }
        let mut outcome = self.end_server(plan, Stop::Terminate(END_GRACE))?;
        outcome.wall = load.wall;
        let crash = Some(outcome.ending).filter(|ending| is_crash(*ending));
        outcome.ending = load.ending;
        if let Some(crash) = crash.filter(|_| is_success(plan, load.ending)) {
            outcome.ending = crash;
            return Ok(self.failed(outcome, "the server crashed on SIGTERM"));
        }
        if !is_success(plan, load.ending) {
            let tail = output::tail(&self.scratch.stderr);
            return Ok(self.failed(outcome, &format!("the load failed: {tail}")));
        }
        Ok(Finished {
            outcome,
            failed: false,
            stderr_tail: String::new(),
        })
    }

    /// Checks the server's readiness repeatedly, until the server is ready, has ended, or has
    /// exceeded its time limit.
    fn until_ready(
        &mut self,
        plan: &Plan,
        server: &Server,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Readiness, MeasureError> {
        let started = Instant::now();
        let within = Duration::from(server.ready_within);
        loop {
            let left = within.saturating_sub(started.elapsed());
            if self.shell(&server.ready, Some(left.into()), interrupt)? == Ending::Exited(0) {
                return Ok(Readiness::Ready);
            }
            look(watch);
            if let Some(answer) = self.measured.poll(ASK_AGAIN)? {
                return server_outcome(plan, answer).map(|outcome| Readiness::Died(outcome.into()));
            }
            if started.elapsed() >= within {
                return Ok(Readiness::Late);
            }
        }
    }

    fn run_load(
        &mut self,
        plan: &Plan,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Load, MeasureError> {
        let variables = self.needs.base.variables.clone();
        let spawn = self.command_spawn(plan, &variables)?;
        self.helper.begin(spawn)?;
        loop {
            match self.helper.poll(patience(watch))? {
                Some(Answer::Ended(load)) => return Ok(Load::Ended(load)),
                Some(Answer::Refused(refusal)) => {
                    return Err(refused(&plan.command[0], &[], refusal));
                }
                None => {}
            }
            look(watch);
            if let Some(answer) = self.measured.poll(Duration::ZERO)? {
                self.helper.kill()?;
                return Ok(Load::Orphaned(Box::new(server_outcome(plan, answer)?)));
            }
            self.helper.end_if(interrupt)?;
        }
    }

    /// If the server's memory is watched, leaves the server idle for the plan's idle time, and then
    /// reads its memory. Returns the server's outcome if the server ended meanwhile.
    fn rest(
        &mut self,
        plan: &Plan,
        server: &Server,
        watch: &mut Option<Watch>,
        interrupt: &Interrupt,
    ) -> Result<Option<Outcome>, MeasureError> {
        let Some(watch) = watch else {
            return Ok(None);
        };
        watch.load_ended();
        let idle = Duration::from(server.idle);
        let began = Instant::now();
        while began.elapsed() < idle {
            if let Some(answer) = self.measured.poll(INTERVAL)? {
                return server_outcome(plan, answer).map(Some);
            }
            watch.sample();
            self.measured.end_if(interrupt)?;
        }
        if !idle.is_zero() {
            watch.rested(began.elapsed());
        }
        Ok(None)
    }

    fn end_server(&mut self, plan: &Plan, stop: Stop) -> Result<Outcome, MeasureError> {
        self.measured.stop(stop)?;
        server_outcome(plan, self.measured.finish()?)
    }

    fn failed(&self, outcome: Outcome, what: &str) -> Finished {
        let tail = output::tail(&self.scratch.server_stderr);
        let stderr_tail = format!("{what}\n{tail}").trim_end().to_owned();
        Finished {
            outcome,
            failed: true,
            stderr_tail,
        }
    }
}

fn server_outcome(plan: &Plan, answer: Answer) -> Result<Outcome, MeasureError> {
    match answer {
        Answer::Ended(outcome) => Ok(*outcome),
        Answer::Refused(refusal) => Err(refused("the server", &plan.options.pin, refusal)),
    }
}

/// Returns whether a server crashed. After SIGTERM, neither an exit with any status nor an end by
/// SIGTERM or SIGKILL is a crash.
fn is_crash(ending: Ending) -> bool {
    matches!(ending, Ending::Killed(signal) if signal != libc::SIGTERM && signal != libc::SIGKILL)
}
