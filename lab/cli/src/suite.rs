//! `heapdrome suite`: measures the tables of a document on this machine, or runs the kinds of
//! misuse.

use std::borrow::Cow;

use heapdrome_engine::suite::{self, DocumentRequest, Estimate, LGALLOC, Session, SuiteRequest};
use heapdrome_schema::Scale;
use heapdrome_suites::present_name;

use crate::arguments::paging::PagingSuiteArguments;
use crate::arguments::{SuiteArguments, is_stdout};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, progress};

/// Runs a suite and prints its tables and the verdicts on the document's claims.
///
/// # Errors
/// Returns an error if there is no suite of this name, it cannot run, or an entrant failed. All
/// measurements until then have been printed and written.
pub fn suite(mut arguments: SuiteArguments) -> Result<(), Failure> {
    use_present_names(&mut arguments);
    let arguments = &arguments;
    // The file from which a suite continues is also written, so it is checked like a destination.
    let resumed = arguments.resume.as_deref().filter(|file| file.exists());
    let data = arguments.paging.data.as_deref();
    let files = Destinations::of(&arguments.output).and("--data", data);
    let files = files.and("--resume", resumed);
    files.check(&[])?;
    match arguments.name == LGALLOC {
        true => output::refuse_csv(&arguments.output, "the suite lgalloc")?,
        false => refuse_options(&arguments.paging)?,
    }
    match arguments.name == heapdrome_suites::MISUSE {
        true => misuse(arguments),
        false => run(arguments, &files),
    }
}

/// Replaces former names of suites with the current names, and prints a message. If the suite is a
/// file of the user's own, the names stay unchanged.
fn use_present_names(arguments: &mut SuiteArguments) {
    if suite::is_file(&arguments.name) {
        return;
    }
    for word in std::iter::once(&mut arguments.name).chain(&mut arguments.only) {
        if let Cow::Owned(present) = present_name(word) {
            output::tell(format_args!(
                "{word} is now called {present}; the former name works in this release only"
            ));
            *word = present;
        }
    }
}

/// Refuses options that only the suite lgalloc supports.
fn refuse_options(arguments: &PagingSuiteArguments) -> Result<(), Failure> {
    match arguments.make.swap.is_some() || arguments.thp || arguments.data.is_some() {
        true => Err(Failure::usage(
            "--swap, --thp and --data are for the suite lgalloc",
        )),
        false => Ok(()),
    }
}

fn run(arguments: &SuiteArguments, files: &Destinations<'_>) -> Result<(), Failure> {
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
        let printed = output::print_collection(collection, files);
        let saved = output::save_collection(collection, &arguments.output, Some(&redaction));
        let data = output::save_cells(collection, arguments.paging.data.as_deref());
        printed.and(saved).and(data)?;
    }
    ended.and_then(|()| session.outcome())
}

/// Prints the estimate on standard output, or on standard error if standard output receives one of
/// the files.
fn tell(estimate: &Estimate, files: &Destinations<'_>) -> Result<(), Failure> {
    let text = estimate.text();
    match files.take_stdout() {
        true => output::print_aside(text.trim_end()),
        false => output::print(text.as_bytes())?,
    }
    Ok(())
}

/// Runs the selected kinds of misuse under the selected allocators, and prints and writes the
/// outcomes.
fn misuse(arguments: &SuiteArguments) -> Result<(), Failure> {
    refuse(arguments)?;
    let engine = progress::engine()?;
    let collection = suite::misuse(&request(arguments), &engine)?;
    let redaction = engine.folders.redaction();
    output::publish_collection(&collection, &arguments.output, Some(&redaction))?;
    match collection.misuse().is_empty() {
        true => Err(Failure::Entrant("no allocator could be tested".to_owned())),
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
        document: DocumentRequest {
            swap: arguments.paging.make.wish(),
            set_huge_pages: arguments.paging.thp,
        },
        asked: std::env::args().skip(1).collect(),
    }
}

/// Refuses options that the suite `misuse` does not support.
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
