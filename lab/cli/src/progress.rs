//! Shows the engine's events: lines and tables on standard error, and a progress bar if standard
//! error is a terminal.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use heapdrome_engine::event::{
    Aim, Event, Found, GoingOn, Piece, RoundsDone, Searching, Sink, Step,
};
use heapdrome_engine::{Engine, failure::Failure};
use heapdrome_paging::{Leftovers, Turn, size, told_trial};
use heapdrome_registry::BuildEvent;
use heapdrome_schema::{Bytes, PagingCell};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// Length of a race's progress bar in steps. The bar shows the share of the race that is done,
/// because the total number of rounds is not known beforehand.
const STEPS: u64 = 1000;

/// Interval between two redraws of a progress bar.
const TICK: Duration = Duration::from_millis(500);

/// Opens an engine whose events are shown.
///
/// # Errors
/// Returns the errors of [`Engine::new`].
pub fn engine() -> Result<Engine, Failure> {
    Engine::new(Progress::default())
}

/// Display of the engine's events: lines and tables, and a progress bar in a terminal.
#[derive(Default)]
struct Progress {
    /// The bar of the current activity, if any.
    bar: RefCell<Option<ProgressBar>>,
}

impl Sink for Progress {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::RaceOpened => self.open(STEPS),
            Event::RaceClosed | Event::BuildEnded => self.close(),
            Event::RaceDoes { title, step } => self.show_step(title, step),
            Event::Build { allocator, event } => self.show_build(allocator, event),
            Event::BuildStarted(allocator) => {
                self.tell(format!("building {allocator}"));
                self.open(1);
            }
            Event::Interim(result) => {
                let table = heapdrome_report::interim(result, output::terminal());
                self.aside(|| output::print_aside(&table));
            }
            Event::Leftovers(what) => left_behind(what)
                .into_iter()
                .for_each(|line| self.tell(line)),
            told => self.tell(line(told)),
        }
    }
}

impl Progress {
    fn open(&self, length: u64) {
        self.close();
        let bar = ProgressBar::new(length);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        self.bar.replace(Some(bar));
    }

    fn close(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows the progress: a position from 0 to the length of the bar, and a text. `None` keeps the
    /// position.
    fn show(&self, position: Option<u64>, message: String) {
        if let Some(bar) = &*self.bar.borrow() {
            if let Some(position) = position {
                bar.set_position(position);
            }
            bar.set_message(message);
        }
    }

    /// Prints a line on standard error, above the bar if there is one.
    fn tell(&self, line: String) {
        self.aside(|| output::tell(line));
    }

    /// Runs `print` while the bar is hidden.
    fn aside(&self, print: impl FnOnce()) {
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn show_step(&self, title: Option<&str>, step: Step<'_>) {
        let position = match step {
            Step::Round { share, .. } => Some((share * STEPS as f64) as u64),
            Step::WarmUp { .. } | Step::Untimed { .. } => None,
        };
        self.show(position, entitled(title, &step_text(step)));
    }

    fn show_build(&self, allocator: &str, event: &BuildEvent) {
        match event {
            BuildEvent::Step { n, of, what } => {
                if let Some(bar) = &*self.bar.borrow() {
                    bar.set_length(*of as u64);
                }
                self.show(Some(*n as u64), format!("{allocator}: {what}"));
            }
            BuildEvent::Fetching { package } => {
                self.show(None, format!("{allocator}: fetching {package}"));
            }
            BuildEvent::Finished { .. } => {}
        }
    }
}

/// Returns the text, preceded by the title of its race, if the race has one.
fn entitled(title: Option<&str>, text: &str) -> String {
    match title {
        Some(title) => format!("{title}: {text}"),
        None => text.to_owned(),
    }
}

fn step_text(step: Step<'_>) -> String {
    match step {
        Step::WarmUp { round, of } => format!("warm-up round {} of {of}", round + 1),
        Step::Untimed { aim, entrant } => format!("{}: {entrant}", aim_text(aim)),
        Step::Round {
            round,
            entrant,
            left,
            ..
        } => {
            let left = match left.as_secs() {
                0 => String::new(),
                seconds => {
                    let left = humantime::format_duration(Duration::from_secs(seconds));
                    format!(", at most {left} left")
                }
            };
            format!("round {}, {entrant}{left}", round + 1)
        }
    }
}

fn aim_text(aim: Aim) -> &'static str {
    match aim {
        Aim::Proof => "proving which object serves malloc",
        Aim::Memory => "watching memory",
        Aim::Blocks => "following every block",
        Aim::Work => "counting the work again",
    }
}

/// Formats an event as a line; empty for events that are shown in another way.
fn line(event: Event<'_>) -> String {
    match event {
        Event::RaceFound { title, finding } => entitled(title, &found_text(finding)),
        Event::GoingOn(what) => going_on(what),
        Event::CellStarted(title) => title.to_owned(),
        Event::Remark(text) => text.to_owned(),
        Event::Locking(what) => format!("opening {what}"),
        Event::Compiling(trace) => format!("compiling {}", trace.display()),
        Event::SweepUnfinished { resume, left } => sweep_unfinished(resume, left),
        Event::SuiteStarted {
            pieces,
            left,
            done,
            file,
        } => suite_started(pieces, left, done, file),
        Event::SuiteInterrupted { arguments, file } => {
            format!("continue with: heapdrome {arguments} --resume {file}")
        }
        Event::Estimating => {
            "running each allocator once on a small form, to estimate the time".to_owned()
        }
        Event::NotBuilt(names) => not_built(names),
        Event::NotEstimated { cell, failure } => format!("{cell} cannot be estimated: {failure}"),
        Event::DoesNotRace { allocator, failure } => {
            format!("{allocator} does not race: {failure}")
        }
        Event::MakingSwap(bytes) => format!("creating {} of swap", size(bytes)),
        Event::Turn { cell, turn } => turn_text(cell, turn),
        Event::RoundLost { cell, why } => format!("{}: {}: {why}", cell.part, cell.name),
        Event::Misusing(allocator) => format!("misusing {allocator}"),
        Event::NotMisused { allocator, why } => format!("{allocator} is left out: {why}"),
        Event::Preparing(event) => event.to_string(),
        Event::Generating { sets, size, peak } => generating(sets, size, peak),
        Event::Generated(time) => format!("generated in {:.1} s", time.as_secs_f64()),
        Event::BuildsAhead { builds } => builds_ahead(builds),
        Event::Built {
            allocator,
            version,
            seconds,
        } => format!("built {allocator} {version} in {seconds} s"),
        Event::Searching { allocator, step } => search_text(allocator, step),
        Event::RaceOpened
        | Event::RaceClosed
        | Event::RaceDoes { .. }
        | Event::Interim(_)
        | Event::BuildStarted(_)
        | Event::Leftovers(_)
        | Event::Build { .. }
        | Event::BuildEnded => String::new(),
    }
}

fn suite_started(pieces: Piece, left: usize, done: usize, file: &Path) -> String {
    let pieces = match pieces {
        Piece::Race => "races",
        Piece::Cell => "cells",
    };
    let file = file.display();
    format!("{left} {pieces}, {done} done before; results are kept in {file}")
}

fn not_built(names: &[String]) -> String {
    let names = names.join(", ");
    format!("not built, and assumed to be as fast as the others: {names}")
}

fn turn_text(cell: &PagingCell, turn: Turn) -> String {
    format!(
        "round {} of {}, {} of {}: {}: {}",
        turn.round, turn.rounds, turn.number, turn.of, cell.part, cell.name
    )
}

fn generating(sets: u32, size: u32, peak: Bytes) -> String {
    format!(
        "generating {sets} data sets of size {size} (a race with them takes about {peak} of memory); this is \
         done once"
    )
}

fn found_text(found: Found<'_>) -> String {
    match found {
        Found::Left {
            entrant,
            ending,
            during,
        } => format!("{entrant} leaves the race: {ending} in {during}"),
        Found::MetricMissing { metric, entrant } => {
            format!("metric {metric} was not found in the output under {entrant}")
        }
        Found::Decided { rounds, entrants } => format!(
            "decided after {rounds} rounds, no further rounds: {}",
            entrants.join(", ")
        ),
        Found::Outlook(text) | Found::Remark(text) => text.to_owned(),
    }
}

fn going_on(what: GoingOn<'_>) -> String {
    let races = what.races.map_or_else(String::new, |(ended, races)| {
        format!("{ended} of {races} races ended, ")
    });
    let RoundsDone {
        done,
        most,
        may_end_sooner,
    } = what.rounds;
    let at_most = if may_end_sooner { "at most " } else { "" };
    format!(
        "continuing {} ({}), begun {} in {}: {races}{done} of {at_most}{most} rounds done",
        what.name,
        what.raced,
        what.begun,
        what.folder.display(),
    )
}

fn sweep_unfinished(resume: Option<&str>, left: &[&str]) -> String {
    let next = match (resume, left) {
        (Some(name), _) => format!("; continue with: heapdrome race --resume {name}"),
        (None, []) => String::new(),
        (None, left) => format!("; race the rest, too: {}", left.join(", ")),
    };
    format!("the completed part is reported{next}")
}

fn search_text(allocator: &str, step: Searching<'_>) -> String {
    let kind = |swap| if swap { "with swap" } else { "no swap" };
    match step {
        Searching::Proof => format!("{allocator}: {}", aim_text(Aim::Proof)),
        Searching::NotServed(why) => format!("{allocator}: {why}"),
        Searching::Unlimited { swap } => {
            format!("{allocator}, {}: without a limit", kind(swap))
        }
        Searching::Tried { swap, trial } => {
            format!("{allocator}, {}: {}", kind(swap), told_trial(trial))
        }
    }
}

/// Returns a line for each leftover of a killed paging lab that was removed or kept, and for each
/// failed removal.
fn left_behind(what: &Leftovers) -> Vec<String> {
    let removed = what.removed.iter();
    let removed = removed.map(|item| format!("removed a leftover of an earlier run: {item}"));
    let foreign = what
        .foreign
        .iter()
        .map(|item| format!("kept, because no earlier run created it: {item}"));
    let failed = what.failed.iter().map(ToString::to_string);
    removed.chain(foreign).chain(failed).collect()
}

fn builds_ahead(builds: &[(&str, u64)]) -> String {
    let told: Vec<String> = builds
        .iter()
        .map(|(name, seconds)| format!("{name} {seconds} s"))
        .collect();
    format!(
        "building missing allocators first; on two busy cores that took: {}",
        told.join(", ")
    )
}
