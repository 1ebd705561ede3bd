//! Selection of the interrupted race or sweep to resume.

use std::path::{Path, PathBuf};

use heapdrome_measure::journal::{self, RaceSummary};
use heapdrome_schema::{Plan, RaceResult};

use super::contest::Contest;
use super::plan;
use super::sweep::Whole;
use crate::engine::Engine;
use crate::event::{Event, GoingOn, RoundsDone};
use crate::failure::Failure;
use crate::program;

/// Value of `--resume` without a name.
pub const LATEST: &str = "latest";

/// Kind of the request that started a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A single race.
    Race,
    /// A sweep.
    Sweep,
    /// A part of a suite.
    Suite,
    /// Unknown, because the arguments are from another version.
    Unknown,
}

/// Function that reads the origin from heapdrome's own arguments in a journal.
pub type ReadOrigin = fn(&[String]) -> Origin;

/// An interrupted race or sweep.
pub enum Interrupted {
    /// A sweep. All its unfinished races are resumed.
    Sweep(Whole),
    /// A single race, by its folder.
    Race(PathBuf),
}

/// Returns the race or sweep to resume. `name` is the name of a race or of a sweep; a race that is
/// part of a sweep selects its sweep. [`LATEST`] selects the last interrupted race or sweep that
/// was started in the current folder. With `new_limits`, [`LATEST`] also considers ended ones.
///
/// # Errors
/// When no race or sweep has this name. With [`LATEST`], when no unfinished race was started here,
/// or the latest one cannot be resumed this way.
pub fn find(
    name: &str,
    new_limits: bool,
    engine: &Engine,
    origin: ReadOrigin,
) -> Result<Interrupted, Failure> {
    let is_it = |race: &RaceSummary| name_of(&race.folder) == name || resumed_by(race) == name;
    let race = match name {
        LATEST => Some(latest(engine, new_limits, origin)?),
        _ => journal::list(&engine.folders.races).into_iter().find(is_it),
    };
    if let Some(whole) = race.as_ref().and_then(|race| Whole::of(&race.plan, engine)) {
        return Ok(Interrupted::Sweep(whole));
    }
    // Lists of races omit a race with an unreadable journal. Opening the journal reports the
    // reason.
    let folder = race.map_or_else(|| engine.folders.races.join(name), |race| race.folder);
    match folder.join(journal::FILE_NAME).is_file() {
        true => Ok(Interrupted::Race(folder)),
        false => Err(Failure::Usage(unknown_race(engine, name))),
    }
}

/// Returns the result so far of the race `name`; `None` if there is no such race. Among the races
/// with a complete round that are not running and belong to no sweep or suite, [`LATEST`] means the
/// one whose journal was written last.
///
/// # Errors
/// When the race is running, or cannot be opened.
pub fn kept(
    name: &str,
    engine: &Engine,
    origin: ReadOrigin,
) -> Result<Option<RaceResult>, Failure> {
    let races = &engine.folders.races;
    let is_shown = |race: &RaceSummary| race.rounds > 0 && origin(&race.plan.asked) == Origin::Race;
    let folder = match name {
        LATEST => journal::latest(races, is_shown).map(|race| race.folder),
        name => Some(races.join(name)).filter(|folder| folder.join(journal::FILE_NAME).is_file()),
    };
    let Some(folder) = folder else {
        return Ok(None);
    };
    let mut contest = Contest::resume(&folder, engine)?;
    let ended = match contest.is_finished() {
        true => contest.begin()?.ok_or(Failure::Interrupted),
        false => Err(Failure::Interrupted),
    };
    let result = contest.result(&ended);
    contest.close();
    Ok(Some(result))
}

/// Reports which race is resumed, before it continues.
pub fn announce(contest: &Contest, engine: &Engine) {
    let plan = contest.plan();
    let raced = match contest.workload() {
        Some(workload) => format!("workload {}", program::one_line(workload)),
        None => program::short(&plan.command),
    };
    engine.tell(Event::GoingOn(GoingOn {
        name: contest.name(),
        raced: &raced,
        begun: &plan.started,
        folder: &plan.started_in,
        races: None,
        rounds: RoundsDone::of(contest.rounds_done(), 1, &plan.stopping),
    }));
}

/// Refuses to resume a race of a sweep if its journal does not name the sweep. The end of such a
/// race would look like the end of the whole sweep.
///
/// # Errors
/// When the race belongs to such a sweep.
pub fn refuse_old_sweep(contest: &Contest, origin: ReadOrigin) -> Result<(), Failure> {
    let plan = contest.plan();
    match is_of_old_sweep(plan, origin) {
        false => Ok(()),
        true => Err(Failure::Usage(format!(
            "{}; run it again{}",
            of_old_sweep(contest.name()),
            again(plan)
        ))),
    }
}

fn is_of_old_sweep(plan: &Plan, origin: ReadOrigin) -> bool {
    plan.part.is_none() && origin(&plan.asked) == Origin::Sweep
}

fn of_old_sweep(name: &str) -> String {
    format!(
        "{name} is one race of a sweep that an older heapdrome ran, and does not name the others, so the sweep cannot be \
         resumed"
    )
}

/// Returns the last interrupted race that was started in the current folder. With `also_ended`,
/// considers ended races, too.
fn latest(engine: &Engine, also_ended: bool, origin: ReadOrigin) -> Result<RaceSummary, Failure> {
    let here = plan::current_folder()?;
    let races = match also_ended {
        true => journal::list(&engine.folders.races),
        false => journal::unfinished(&engine.folders.races),
    };
    let (own, others): (Vec<_>, Vec<_>) = races
        .into_iter()
        .partition(|race| race.plan.started_in == here);
    let mut own = own.into_iter();
    let race = own
        .next()
        .ok_or_else(|| Failure::Usage(nothing_here(&others)))?;
    let Some((why, or)) = why_not(&race, origin) else {
        return Ok(race);
    };
    let earlier = own
        .find(|race| why_not(race, origin).is_none())
        .map(|race| {
            let name = resumed_by(&race);
            format!(" (resume an earlier race with --resume {name})")
        });
    let earlier = earlier.unwrap_or_default();
    let again = again(&race.plan);
    Err(Failure::Usage(format!(
        "{why}{earlier}; {or}run it again{again}"
    )))
}

/// Explains why a race of a suite or of an old sweep cannot be resumed here; `None` for any other
/// race. The second part links this reason to the advice to run the race again.
fn why_not(race: &RaceSummary, origin: ReadOrigin) -> Option<(String, &'static str)> {
    if is_of_old_sweep(&race.plan, origin) {
        return Some((of_old_sweep(&name_of(&race.folder)), ""));
    }
    let suite = "the last interrupted run is a suite; resume it with heapdrome suite NAME --resume FILE.json";
    let is_suite = origin(&race.plan.asked) == Origin::Suite;
    is_suite.then(|| (suite.to_owned(), "or "))
}

/// Explains why there is nothing to resume here, and lists the names that could be resumed.
fn nothing_here(others: &[RaceSummary]) -> String {
    let known = names(others, |race| {
        format!("{} in {}", resumed_by(race), race.plan.started_in.display())
    });
    match known.as_str() {
        "" => "there is no unfinished race to resume".to_owned(),
        known => format!(
            "there is no unfinished race that was started in this folder; elsewhere there are: {known}; resume one \
             with heapdrome race --resume NAME"
        ),
    }
}

/// Maximum number of names in one line.
const NAMES: usize = 5;

/// Formats the names of unfinished races, the last started first. A sweep is listed once.
fn names(races: &[RaceSummary], tell: impl Fn(&RaceSummary) -> String) -> String {
    let mut races: Vec<&RaceSummary> = races.iter().collect();
    races.sort_by(|one, other| other.plan.started.cmp(&one.plan.started));
    let mut known: Vec<String> = Vec::new();
    for told in races.into_iter().map(tell) {
        if !known.contains(&told) {
            known.push(told);
        }
    }
    let more = match known.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    known.truncate(NAMES);
    format!("{}{more}", known.join(", "))
}

/// Returns the name that resumes a race: its own, or that of its sweep.
fn resumed_by(race: &RaceSummary) -> String {
    match &race.plan.part {
        Some(part) => part.of.clone(),
        None => name_of(&race.folder),
    }
}

/// Formats the folder of a race, unless it is the current one, and the race's command line. A
/// command of several lines is omitted, because a message has only one line.
fn again(plan: &Plan) -> String {
    let place = match std::env::current_dir() {
        Ok(here) if here == plan.started_in => String::new(),
        _ => format!(" in {}", plan.started_in.display()),
    };
    let words = std::iter::once("heapdrome").chain(plan.asked.iter().map(String::as_str));
    match shlex::try_join(words) {
        Ok(line) if !line.contains('\n') => format!("{place}: {line}"),
        _ => place,
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn unknown_race(engine: &Engine, name: &str) -> String {
    let known = names(&journal::unfinished(&engine.folders.races), resumed_by);
    match known.as_str() {
        "" => format!("no such race: {name}, and no unfinished one"),
        known => format!("no such race: {name} (unfinished are: {known})"),
    }
}
