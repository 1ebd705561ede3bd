//! `heapdrome suite`: the tables of a document, measured here.

use heapdrome_engine::suite::{self, Estimate, Session, SuiteRequest, outcome};
use heapdrome_record::Scale;

use crate::arguments::{SuiteArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, paging, progress};

use paging::session::destinations;

/// Runs a suite and prints its tables and what became of the document's sentences.
///
/// # Errors
/// When there is no suite of this name, it cannot be run, or an entrant failed; whatever was
/// measured until then has been printed and written.
pub fn suite(arguments: &SuiteArguments) -> Result<(), Failure> {
    // The file that a suite goes on with is written, too.
    let resumed = arguments.resume.as_deref().filter(|file| file.exists());
    let files = destinations(&arguments.output, arguments.paging.data.as_deref());
    let files = files.and("--resume", resumed);
    files.check(&[])?;
    if arguments.name == paging::suite::NAME {
        output::refuse_csv(&arguments.output, "the suite lgalloc")?;
        return paging::suite::suite(arguments);
    }
    paging::suite::refuse_options(&arguments.paging)?;
    match arguments.name == heapdrome_suites::MISUSE {
        true => misuse(arguments),
        false => of_races(arguments, &files),
    }
}

fn of_races(arguments: &SuiteArguments, files: &Destinations<'_>) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let request = request(arguments);
    let mut session = Session::open(&request, &engine)?;
    if arguments.estimate || request.scale == Scale::Published {
        let estimate = session.estimate()?;
        tell(&estimate, files)?;
        if arguments.estimate {
            return Ok(());
        }
        estimate.refuse_long(arguments.yes)?;
    }
    let ended = session.run();
    if let Some(collection) = session.result()? {
        let redaction = engine.folders.redaction();
        output::publish_collection(collection, &arguments.output, Some(&redaction))?;
    }
    ended.and_then(|()| outcome(&session.collection))
}

/// Prints the estimate; beside a file that goes to standard output it is told on standard error.
fn tell(estimate: &Estimate, files: &Destinations<'_>) -> Result<(), Failure> {
    let text = estimate.text();
    match files.take_stdout() {
        true => output::print_aside(text.trim_end()),
        false => output::print(text.as_bytes())?,
    }
    Ok(())
}

/// Commits every kind of misuse under every allocator, and prints what came of it.
fn misuse(arguments: &SuiteArguments) -> Result<(), Failure> {
    refuse(arguments)?;
    let engine = progress::engine()?;
    let collection = suite::misuse(&request(arguments), &engine)?;
    let redaction = engine.folders.redaction();
    output::publish_collection(&collection, &arguments.output, Some(&redaction))?;
    match collection.misuse.is_empty() {
        true => Err(Failure::Entrant("nothing could be tried".to_owned())),
        false => Ok(()),
    }
}

fn request(arguments: &SuiteArguments) -> SuiteRequest {
    let file = arguments.output.json.clone();
    SuiteRequest {
        name: arguments.name.clone(),
        scale: arguments.scale(),
        estimate: arguments.estimate,
        allocators: arguments.allocators.clone(),
        only: arguments.only.clone(),
        rounds: arguments.rounds,
        resume: arguments.resume.clone(),
        file: file.filter(|path| !is_stdout(path)),
        redact: arguments.output.redact,
        seed: arguments.seed,
        asked: std::env::args().skip(1).collect(),
    }
}

/// What other suites have and this one has not.
fn refuse(arguments: &SuiteArguments) -> Result<(), Failure> {
    let given = [
        ("--published", arguments.published),
        ("--estimate", arguments.estimate),
        ("--rounds", arguments.rounds.is_some()),
        ("--resume", arguments.resume.is_some()),
        ("--seed", arguments.seed.is_some()),
        ("--csv", arguments.output.csv.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "suite misuse has no {option}: it runs each program once, in a minute or two"
        ))),
        None => Ok(()),
    }
}
