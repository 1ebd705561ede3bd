//! `heapdrome trace shrink`: finds the shortest part of a trace whose replay fails under an
//! allocator.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use heapdrome_engine::Engine;
use heapdrome_engine::workload::{companion, trace::Source};
use heapdrome_replay::{CompileError, Script, Shrunk, compile, shrink};
use heapdrome_report::count;
use heapdrome_schema::{Ending, Nanoseconds};
use heapdrome_system::child::{self, Limits};

use super::check_output;
use crate::allocators::Names;
use crate::arguments::is_stdout;
use crate::arguments::trace::shrink::ShrinkArguments;
use crate::exec::environment;
use crate::failure::Failure;
use crate::replay::{Ran, to_its_end};
use crate::{output, progress};

/// Maximum number of calls that are printed.
const PRINTED: usize = 50;

/// Time limit for the replay of a shortened trace, as a multiple of the whole trace's replay time;
/// [`HUNG_MORE`] is added. A replay that exceeds this limit counts as hung.
const HUNG_TIMES: u32 = 4;

/// Additional time for the replay of a shortened trace, beyond the multiple [`HUNG_TIMES`].
const HUNG_MORE: Duration = Duration::from_secs(5);

/// Time limit for the replay of the whole trace.
const WHOLE: Duration = Duration::from_secs(600);

/// Reason why the search ended before it found the shortest trace.
enum Stop {
    /// The time limit was reached.
    Time,
    /// An error occurred, or the user interrupted the search.
    Failed(Failure),
}

/// Finds the shortest part of the trace that still fails, writes it as a trace, and prints its
/// first calls.
///
/// # Errors
/// If the trace cannot be read, the allocator cannot be found or built, a replay cannot run, the
/// whole trace's replay does not fail, the short trace cannot be written, or the user interrupts.
/// If the search itself is interrupted or fails, the shortest trace found so far is still written.
pub fn shrink_one(arguments: &ShrinkArguments) -> Result<(), Failure> {
    let source = Source::named(&arguments.trace)?;
    let output = &arguments.output;
    check_output(&output.output, output.force, &[&arguments.trace])?;
    let engine = progress::engine()?;
    let registry = engine.registry()?;
    let entrant = Names::new(&registry, &engine).ready(&arguments.allocator)?;
    let go_on = || engine.check().is_ok();
    let script = Script::read(&source.open()?, arguments.process, &go_on)
        .map_err(|error| failure(error, &source))?;
    let replays = Replays {
        arguments,
        environment: environment(&entrant).into_iter().collect(),
        companion: companion::find(heapdrome_replay::NAME)?,
        folder: tempfile::tempdir().map_err(Failure::machine)?,
        engine: &engine,
    };
    let began = Instant::now();
    let first = replays.run(&script, WHOLE)?;
    let Some(kind) = Kind::of(&first) else {
        return Err(Failure::Usage(format!(
            "the replay of {source} under {} does not fail at speed {} with --touch {}",
            arguments.allocator, arguments.speed, arguments.touch
        )));
    };
    output::tell(format_args!(
        "{} fail: {}",
        count(script.len() as u64, "call"),
        first.reason()
    ));
    let hung = began.elapsed() * HUNG_TIMES + HUNG_MORE;
    let end = began + arguments.limit;
    let mut fails = |script: &Script| {
        if Instant::now() > end {
            return Err(Stop::Time);
        }
        let ran = replays.run(script, hung).map_err(Stop::Failed)?;
        Ok(Kind::of(&ran).as_ref() == Some(&kind))
    };
    let whole = script.len();
    let shrunk = shrink(script, &mut fails);
    conclude(arguments, shrunk, whole, began.elapsed())
}

/// Way in which a replay fails. A shorter trace must fail in the same way.
#[derive(PartialEq, Eq)]
enum Kind {
    /// The replay ended in this way. The text is the part of the replay's message before the last
    /// colon, such as `wrong content`.
    Ended(Ending, String),
    Hung,
}

impl Kind {
    /// Returns the way in which a replay failed; `None` if it succeeded, or failed because of the
    /// machine.
    fn of(ran: &Ran) -> Option<Self> {
        match ran.status {
            None => Some(Self::Hung),
            Some(status) if status.success() || status.code() == Some(2) => None,
            Some(status) => {
                let reason = ran.reason();
                let words = reason.rsplit_once(": ").map_or("", |(words, _)| words);
                Some(Self::Ended(child::ending(status), words.to_owned()))
            }
        }
    }
}

/// Runner of replays of parts of a trace.
struct Replays<'a> {
    arguments: &'a ShrinkArguments,
    environment: Vec<(String, String)>,
    companion: PathBuf,
    folder: tempfile::TempDir,
    engine: &'a Engine,
}

impl Replays<'_> {
    fn run(&self, script: &Script, limit: Duration) -> Result<Ran, Failure> {
        self.engine.check()?;
        let trace = tempfile::tempfile_in(self.folder.path()).map_err(Failure::machine)?;
        let trace = script.write(trace).map_err(Failure::machine)?;
        let path = self.folder.path().join("program");
        let mut options = std::fs::File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let program = options.open(&path).map_err(Failure::machine)?;
        let go_on = || self.engine.check().is_ok();
        let compiled = compile(&trace, None, self.arguments.speed, &program, &go_on);
        compiled.map_err(|error| match error {
            CompileError::Interrupted => Failure::Interrupted,
            error => Failure::machine(error),
        })?;
        let mut command = Command::new(&self.companion);
        command
            .arg(&path)
            .args(["--touch", self.arguments.touch.name()]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        to_its_end(command, Limits::of_time(limit), self.engine)
    }
}

/// Writes the short trace, and prints its first calls.
fn conclude(
    arguments: &ShrinkArguments,
    shrunk: Shrunk<Stop>,
    whole: usize,
    time: Duration,
) -> Result<(), Failure> {
    let target = &arguments.output.output;
    let script = &shrunk.script;
    output::stream(target, |sink| {
        let written = script.write(sink).map_err(Failure::machine)?;
        written.flush().map_err(Failure::machine)
    })?;
    let left = count(script.len() as u64, "call");
    let tries = count(shrunk.tried, "replay");
    let time = Nanoseconds::from(time);
    output::tell(format_args!(
        "{left} of {whole} remain after {tries} in {time}"
    ));
    if !is_stdout(target) {
        output::tell(format_args!("wrote {}", target.display()));
        if script.len() <= PRINTED {
            output::print(script.to_string().as_bytes())?;
        }
    }
    match shrunk.stopped {
        None => Ok(()),
        Some(Stop::Time) => {
            output::tell("the time is over; a longer --for may find a shorter trace");
            Ok(())
        }
        Some(Stop::Failed(failure)) => Err(failure),
    }
}

fn failure(error: CompileError, source: &Source) -> Failure {
    match error {
        CompileError::Interrupted => Failure::Interrupted,
        error => Failure::Usage(format!("{source}: {error}")),
    }
}
