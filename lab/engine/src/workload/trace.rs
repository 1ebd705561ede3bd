//! The replay of a trace as a workload: its compiled program in the cache, and its command.

mod source;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdrome_packages::{Lock, Shelf};
use heapdrome_replay::{CompileError, Compiled, FORM, Header, Speed, Touch};
use heapdrome_schema::{Fidelity, Replayed};

use super::{companion, quoted};
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::fidelity;

pub use source::{Source, built_in, open};

/// Name of the workload that replays a trace.
pub const NAME: &str = "replay";

/// A requested replay of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Trace to replay.
    pub trace: Source,
    /// Number of the process in the trace; `None` for the process with the most operations.
    pub process: Option<u32>,
    /// Speed of the replay.
    pub speed: Speed,
    /// Way in which the replay writes to each new block.
    pub touch: Touch,
}

/// A compiled trace. Its files are locked against changes and removal while this value lives.
pub struct Program {
    path: PathBuf,
    companion: PathBuf,
    compiled: Compiled,
    trace: Source,
    sha256: String,
    _lock: Arc<Lock>,
}

impl Replay {
    /// Parses words such as [`Replay::words`] returns.
    ///
    /// # Errors
    /// When a word is invalid, no trace is named, or there is no built-in trace of the given name.
    pub fn parse(words: &[String]) -> Result<Self, Failure> {
        let (mut trace, mut process) = (None, None);
        let (mut speed, mut touch) = (Speed::default(), Touch::default());
        for word in words {
            let wrong = || Failure::Usage(format!("{NAME}: cannot read '{word}'"));
            match word.split_once('=').ok_or_else(wrong)? {
                ("trace", name) => trace = Some(Source::named(name.as_ref())?),
                ("process", number) => process = Some(number.parse().map_err(|_| wrong())?),
                ("speed", name) => speed = Speed::find(name).ok_or_else(wrong)?,
                ("touch", name) => touch = Touch::find(name).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        let lack = || Failure::usage("a replay needs a trace; write: heapdrome race --trace FILE");
        Ok(Self {
            trace: trace.ok_or_else(lack)?,
            process,
            speed,
            touch,
        })
    }

    /// Returns the parameters as `name=value` words.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![format!("trace={}", self.trace)];
        words.extend(self.process.map(|number| format!("process={number}")));
        words.push(format!("speed={}", self.speed));
        words.push(format!("touch={}", self.touch));
        words
    }

    /// Checks that the companion is installed and the beginning of the trace is valid. This check
    /// precedes all builds.
    ///
    /// # Errors
    /// When the trace or the companion is missing, or the beginning of the trace is not valid.
    pub fn check(&self) -> Result<(), Failure> {
        companion::find(heapdrome_replay::NAME)?;
        heapdrome_replay::check(&self.trace.open()?).map_err(|error| self.failure(error))
    }

    /// Compiles the trace, unless the cache already contains its program.
    ///
    /// # Errors
    /// When the companion is missing, the trace is unusable, the cache cannot be written, or the
    /// user interrupts.
    pub fn compiled(&self, engine: &Engine) -> Result<Program, Failure> {
        let companion = companion::find(heapdrome_replay::NAME)?;
        let trace = self.trace.open()?;
        let hash = self.trace.sha256()?;
        let process = self
            .process
            .map_or("largest".to_owned(), |one| one.to_string());
        let name = format!("replay-{}-{}-{process}-{FORM}", &hash[..24], self.speed);
        engine.tell(Event::Locking("the compiled trace"));
        let lock = engine.folders.cache.keep(&name);
        engine.check()?;
        let lock = lock.map_err(Failure::machine)?;
        let shelf = engine.folders.cache.shelf(Shelf::Workloads);
        let folder = shelf.map_err(Failure::machine)?.join(&name);
        let path = folder.join("program");
        let known = known(&folder, &path);
        let compiled = match known {
            Some(compiled) => compiled,
            None => {
                let staging = lock.staging().map_err(Failure::machine)?;
                let fresh = staging.path().join("program");
                let compiled = self.compile(&trace, &fresh, engine)?;
                lock.place(&fresh, &folder).map_err(Failure::machine)?;
                compiled
            }
        };
        Ok(Program {
            path,
            companion,
            compiled,
            trace: self.trace.clone(),
            sha256: hash,
            _lock: lock,
        })
    }

    fn failure(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Usage(format!("{}: {error}", self.trace))
    }

    fn compile(&self, trace: &File, folder: &Path, engine: &Engine) -> Result<Compiled, Failure> {
        engine.tell(Event::Compiling(Path::new(&self.trace.to_string())));
        std::fs::create_dir(folder).map_err(Failure::machine)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let program = options
            .open(folder.join("program"))
            .map_err(Failure::machine)?;
        let go_on = || engine.check().is_ok();
        let compiled = heapdrome_replay::compile(trace, self.process, self.speed, &program, &go_on);
        let compiled = compiled.map_err(|error| match error {
            CompileError::Interrupted => Failure::Interrupted,
            CompileError::Output(_) => Failure::machine(error),
            error => self.failure(error),
        })?;
        if let Some(offset) = compiled.cut_off {
            let cut = folder.join(CUT_OFF);
            std::fs::write(cut, offset.to_string()).map_err(Failure::machine)?;
        }
        Ok(compiled)
    }
}

/// Name of a file beside a program. The file contains the offset at which the trace was cut off.
const CUT_OFF: &str = "cut-off";

/// Returns the header and the cut-off of a program in the cache; `None` if the cache has no
/// readable program.
fn known(folder: &Path, program: &Path) -> Option<Compiled> {
    let header = heapdrome_replay::header(&File::open(program).ok()?).ok()?;
    let cut_off = std::fs::read_to_string(folder.join(CUT_OFF)).ok();
    let cut_off = cut_off.and_then(|offset| offset.parse().ok());
    Some(Compiled { header, cut_off })
}

impl Program {
    /// Returns the command that runs the program.
    pub fn command(&self, touch: Touch) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let touch = touch.name().to_owned();
        vec![
            text(&self.companion),
            text(&self.path),
            "--touch".to_owned(),
            touch,
        ]
    }

    /// Returns the header of the program.
    pub fn header(&self) -> &Header {
        &self.compiled.header
    }

    /// Returns the SHA-256 of the trace in hexadecimal.
    pub fn trace_sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the facts about the replay and its program that affect verdicts.
    pub fn replayed(&self) -> Replayed {
        let header = self.header();
        let trace = self.trace.open().ok();
        Replayed {
            speed: header.speed,
            trace_sha256: self.sha256.clone(),
            allocator_share: trace
                .and_then(|trace| heapdrome_replay::share_in_allocator(&trace, header.process)),
            fidelity: self.fidelity().0,
        }
    }

    fn fidelity(&self) -> (Option<Fidelity>, Option<String>) {
        match &self.trace {
            Source::File(path) => fidelity::read(path, &self.sha256, self.header().process),
            Source::Carried(_) => (None, None),
        }
    }

    /// Returns notes on the validity of the figures, on the latest check of the replay, and on
    /// parts of the trace that were not replayed.
    pub fn notes(&self) -> Vec<String> {
        let header = self.header();
        let holds = match header.speed {
            Speed::Dependencies => {
                "time and peak memory are valid at this speed; measure purging, decay and idle \
                 memory at speed paced"
            }
            Speed::Paced => "memory is valid at this speed; measure time at speed dependencies",
            Speed::Locked => {
                "neither time nor memory is valid at this speed; use dependencies or paced"
            }
        };
        let mut notes = vec![format!(
            "the trace was replayed at speed {}: {holds}",
            header.speed
        )];
        let (known, ignored) = self.fidelity();
        notes.extend(ignored);
        notes.extend(match (&self.trace, known) {
            (_, Some(_)) => None,
            (Source::File(path), None) => Some(format!(
                "fidelity not checked: run heapdrome trace check {} -- COMMAND",
                quoted(&path.to_string_lossy())
            )),
            (Source::Carried(_), None) => Some(
                "fidelity not checked: a built-in trace is only the beginning of its program's run"
                    .to_owned(),
            ),
        });
        if header.left_out > 0 {
            notes.push(format!(
                "{} calls of the trace were not replayed: they failed, or freed blocks that the trace does not contain",
                header.left_out
            ));
        }
        if let Some(offset) = self.compiled.cut_off {
            notes.push(format!(
                "the trace was cut off at byte {offset}: only the part before it was replayed"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_and_wrong_ones_are_refused() {
        let replay = Replay {
            trace: Source::File(PathBuf::from("/a b/app.trace")),
            process: Some(3),
            speed: Speed::Paced,
            touch: Touch::First,
        };
        let read = Replay::parse(&replay.words()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read, replay);
        for words in [
            &["speed=paced"][..],
            &["trace=/x", "speed=fast"],
            &["trace=/x", "process=-1"],
            &["trace=/x", "pace"],
            &["trace=library:unheard"],
        ] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            assert!(Replay::parse(&words).is_err(), "{words:?}");
        }
    }
}
