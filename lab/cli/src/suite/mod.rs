//! `heapdrome suite`: the tables of a document, measured here.

mod estimate;
mod misuse;
mod running;
mod selecting;

use heapdrome_record::{Collection, RaceResult, SCHEMA, Scale, Status};
use heapdrome_suites::Suite;

use crate::arguments::SuiteArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::race::seed_from_clock;
use crate::{interrupt, output, paging};

use paging::session::destinations;
use running::Session;

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
        true => misuse::misuse(arguments),
        false => of_races(arguments, &files),
    }
}

fn of_races(arguments: &SuiteArguments, files: &Destinations<'_>) -> Result<(), Failure> {
    let interrupt = interrupt::flag()?;
    let folders = Folders::find()?.interrupted_by(&interrupt);
    let scale = scale(arguments);
    let mut suites = selecting::suites(&arguments.name)?;
    Suite::check_only(&suites, &arguments.only).map_err(Failure::usage)?;
    let before = selecting::taken_up(arguments, scale)?;
    let equipment = selecting::equip(&mut suites, arguments, &folders, scale)?;
    let mut races = selecting::races(&suites, arguments, &equipment.rivals, scale);
    if let Some(rounds) = arguments.rounds {
        for race in &mut races {
            (race.rounds, race.most_rounds) = (rounds, None);
        }
    }
    if races.is_empty() {
        return Err(Failure::usage(
            "nothing to run: no cell has an allocator to compare at this scale",
        ));
    }
    if let Some(before) = &before {
        selecting::check_rivals(arguments, before, &races)?;
    }
    let seed = arguments.seed.unwrap_or_else(seed_from_clock);
    let collection = before.unwrap_or_else(|| empty(&arguments.name, scale));
    let mut session = Session::new(suites, collection, arguments, &folders, seed, interrupt)?;
    if arguments.estimate || scale == Scale::Published {
        let estimate = estimate::estimate(&mut session, &races, &equipment.unbuilt)?;
        estimate.tell(files)?;
        if arguments.estimate {
            return Ok(());
        }
        estimate.refuse_long(arguments.yes)?;
    }
    let mut ended = session.run(&races);
    // Cells that were picked are all that was asked for; and whoever interrupts waits for nothing.
    if arguments.only.is_empty() && !matches!(ended, Err(Failure::Interrupted)) {
        let tried = misuse::beside_races(&mut session, &races, &folders);
        ended = ended.and(tried);
    }
    session.report(&arguments.output)?;
    ended.and_then(|()| outcome(&session.collection))
}

/// How much of a suite was asked for.
pub fn scale(arguments: &SuiteArguments) -> Scale {
    match (arguments.quick, arguments.published) {
        (true, _) => Scale::Quick,
        (_, true) => Scale::Published,
        _ => Scale::Usual,
    }
}

fn empty(name: &str, scale: Scale) -> Collection {
    let now = std::time::SystemTime::now();
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: humantime::format_rfc3339_seconds(now).to_string(),
        asked: std::env::args().skip(1).collect(),
        name: name.to_owned(),
        scale: Some(scale),
        machine: heapdrome_record::Machine::default(),
        races: Vec::new(),
        tables: Vec::new(),
        ccdfs: Vec::new(),
        misuse: Vec::new(),
        survival: Vec::new(),
        sweep: None,
        claims: Vec::new(),
        absent: Vec::new(),
        remarks: Vec::new(),
    }
}

/// The exit status of a suite that has been reported.
fn outcome(collection: &Collection) -> Result<(), Failure> {
    let out = |result: &RaceResult| {
        let rows = result.entrants.iter();
        let failed = rows.filter(|row| row.status != Status::Ok);
        failed.map(|row| row.allocator.clone()).collect::<Vec<_>>()
    };
    let races = collection.races.iter();
    let mut names: Vec<String> = races.flat_map(|race| out(&race.result)).collect();
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Entrant(format!(
            "not in every race: {}",
            names.join(", ")
        ))),
    }
}
