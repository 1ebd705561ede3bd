//! A launcher without processes: a function returns the output and the cost of each command. Tests
//! of races thus need neither processes nor time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use heapdrome_schema::{Bytes, Ending};

use super::message::{Answer, Outcome, Refusal, Spawn, Text, Usage};

/// A command that a race wants to run.
#[derive(Clone, Debug)]
pub struct SimulatedRun {
    /// Path of the program, followed by its arguments.
    pub words: Vec<String>,
    /// Environment of the command.
    pub environment: BTreeMap<String, String>,
}

/// Output and cost of a command.
#[derive(Clone, Debug)]
pub struct SimulatedEnd {
    /// Time from the command's start to its end.
    pub wall: Duration,
    /// Processor time in user mode.
    pub user: Duration,
    /// Largest resident size.
    pub peak: Bytes,
    /// Way in which the command ended.
    pub ending: Ending,
    /// Standard output of the command.
    pub stdout: String,
}

/// Function that returns the output and the cost of each command.
#[derive(Clone)]
pub struct Simulation(Arc<dyn Fn(&SimulatedRun) -> SimulatedEnd + Send + Sync>);

impl Simulation {
    /// Creates a simulation in which every command ends with the result of `run`.
    pub fn new(run: impl Fn(&SimulatedRun) -> SimulatedEnd + Send + Sync + 'static) -> Self {
        Self(Arc::new(run))
    }

    /// Answers a request to start a command.
    pub(super) fn answer(&self, spawn: &Spawn) -> Answer {
        let words = std::iter::once(&spawn.program).chain(&spawn.arguments);
        let variables = spawn.environment.iter();
        let end = (self.0)(&SimulatedRun {
            words: words.map(readable).collect(),
            environment: variables
                .map(|(name, value)| (readable(name), readable(value)))
                .collect(),
        });
        for (path, text) in [(&spawn.stdout, &*end.stdout), (&spawn.stderr, "")] {
            if let Err(error) = std::fs::write(path.to_path(), text) {
                return Answer::Refused(Refusal::Stream {
                    path: path.clone(),
                    error: error.raw_os_error().unwrap_or(0),
                });
            }
        }
        Answer::Ended(Box::new(Outcome {
            wall: end.wall.into(),
            usage: Usage {
                user: end.user.into(),
                peak_rss: end.peak,
                ..Usage::default()
            },
            ending: end.ending,
            counters: BTreeMap::new(),
            detached: Vec::new(),
        }))
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Simulation")
    }
}

fn readable(text: &Text) -> String {
    text.to_os().to_string_lossy().into_owned()
}
