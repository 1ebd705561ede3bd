//! Takes up a race or a sweep that was interrupted: which one it is.

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

/// What `--resume` without a name stands for.
pub const LATEST: &str = "latest";

/// What a race was started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A race of its own.
    Race,
    /// A sweep.
    Sweep,
    /// A part of a suite.
    Suite,
    /// The arguments are those of another version.
    Unknown,
}

/// Reads what was asked for from heapdrome's own arguments, as a journal has them.
pub type ReadOrigin = fn(&[String]) -> Origin;

/// What was interrupted.
pub enum Interrupted {
    /// A sweep, of which every race goes on.
    Sweep(Whole),
    /// The folder of a race by itself.
    Race(PathBuf),
}

/// What goes on: the sweep or the race of this name, the sweep of the race of this name, or what
/// was interrupted last of all that was started in the current folder. With `new_limits` that may
/// have ended.
///
/// # Errors
/// When nothing has this name; for [`LATEST`], when nothing was started here that is unfinished, or
/// the last of it cannot go on so.
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
    // A journal that cannot be read is in no list; whoever opens it is told why.
    let folder = race.map_or_else(|| engine.folders.races.join(name), |race| race.folder);
    match folder.join(journal::FILE_NAME).is_file() {
        true => Ok(Interrupted::Race(folder)),
        false => Err(Failure::Usage(unknown_race(engine, name))),
    }
}

/// The result of the race of this name as far as it came, or for [`LATEST`] of the race by itself
/// that was written last; `None` where there is none.
///
/// # Errors
/// When its journal cannot be used, as that of a race that is running.
pub fn kept(
    name: &str,
    engine: &Engine,
    origin: ReadOrigin,
) -> Result<Option<RaceResult>, Failure> {
    let is_it = |race: &RaceSummary| match name {
        LATEST => race.rounds > 0 && origin(&race.plan.asked) == Origin::Race,
        name => name_of(&race.folder) == name,
    };
    let Some(race) = journal::latest(&engine.folders.races, is_it) else {
        return Ok(None);
    };
    let mut contest = Contest::resume(&race.folder, engine)?;
    let ended = match contest.is_finished() {
        true => contest.begin()?.ok_or(Failure::Interrupted),
        false => Err(Failure::Interrupted),
    };
    let result = contest.result(&ended);
    contest.close();
    Ok(Some(result))
}

/// Says which race goes on, before anything of it does.
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

/// A race of a sweep whose journal does not name the sweep is not taken for a race of its own: its
/// end would look like the end of the whole.
///
/// # Errors
/// When it is one.
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
        "{name} is one race of a sweep that an older heapdrome ran, and does not name the others, so the sweep cannot \
         go on"
    )
}

/// What was interrupted last, or where `also_ended` ran last, of all that was started in the
/// current folder.
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
            format!(" (an earlier race goes on by --resume {name})")
        });
    let earlier = earlier.unwrap_or_default();
    let again = again(&race.plan);
    Err(Failure::Usage(format!(
        "{why}{earlier}; {or}run it again{again}"
    )))
}

/// Why a race is not taken up unless it is named, or not at all; and whether running it again is
/// but one of two ways.
fn why_not(race: &RaceSummary, origin: ReadOrigin) -> Option<(String, &'static str)> {
    if is_of_old_sweep(&race.plan, origin) {
        return Some((of_old_sweep(&name_of(&race.folder)), ""));
    }
    let suite = "what was interrupted last is a suite, which goes on by heapdrome suite NAME --resume FILE.json";
    let is_suite = origin(&race.plan.asked) == Origin::Suite;
    is_suite.then(|| (suite.to_owned(), "or "))
}

/// Why nothing goes on here, and what could by its name.
fn nothing_here(others: &[RaceSummary]) -> String {
    let known = names(others, |race| {
        format!("{} in {}", resumed_by(race), race.plan.started_in.display())
    });
    match known.as_str() {
        "" => "there is no unfinished race to resume".to_owned(),
        known => format!(
            "there is no unfinished race that was started in this folder; elsewhere there are: {known}; one goes on \
             by heapdrome race --resume NAME"
        ),
    }
}

/// As many names as one line holds.
const NAMES: usize = 5;

/// Races that were not finished, the one that began last first; of a sweep there is one.
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

/// The name by which a race goes on: its own, or that of its sweep.
fn resumed_by(race: &RaceSummary) -> String {
    match &race.plan.part {
        Some(part) => part.of.clone(),
        None => name_of(&race.folder),
    }
}

/// Where, if not here, and how to run it again; a command of several lines has no place in a
/// message of one.
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
        "" => format!("there is no race called {name}, and no unfinished one"),
        known => format!("there is no race called {name}; unfinished are: {known}"),
    }
}
