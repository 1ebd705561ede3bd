//! The races of a suite.

use std::collections::BTreeMap;

use heapdrome_schema::{Member, RaceResult, Scale};

use crate::definition::{Cell, Form};
use crate::{Entrant, Suite, SuiteError};

/// A race of a suite, with all settings that a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// Suite and cell, such as `rpmalloc/16-1000`.
    pub cell: String,
    /// Description that progress messages show.
    pub title: String,
    /// Name of the workload that the race runs.
    pub workload: String,
    /// Parameters of the workload.
    pub words: Vec<String>,
    /// The value of the parameter that the cell sweeps; `None` without a sweep.
    pub swept: Option<u64>,
    /// Whether the swept parameter is the number of threads. If so, the race uses one processor for
    /// each thread.
    pub sweeps_threads: bool,
    /// The registry name of the baseline.
    pub baseline: String,
    /// The registry names of the rivals.
    pub allocators: Vec<String>,
    /// Number of rounds. With `most_rounds`, this is the minimum.
    pub rounds: u32,
    /// Maximum number of rounds. If set, an entrant stops once every target on it is decided.
    pub most_rounds: Option<u32>,
    /// Number of untimed memory runs for each allocator.
    pub memory_runs: u32,
    /// Number of operations in the published form, divided by the number in one run of this race;
    /// `None` if either is unknown.
    pub factor: Option<f64>,
}

/// Selection of a suite's races.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    /// The scale of each race.
    pub scale: Scale,
    /// Number of processors of the machine.
    pub processors: usize,
    /// Selectors of cells: `cell`, `suite/cell` or `suite`, each optionally followed by `=value`;
    /// empty for all.
    pub only: &'a [String],
    /// Registry names of the rivals that replace the suite's own; empty for the suite's own.
    pub allocators: &'a [String],
}

impl Suite {
    /// Returns the races to run. The caller marks unavailable allocators beforehand with
    /// [`Suite::take`].
    pub fn races(&self, selection: &Selection<'_>) -> Vec<Race> {
        let mut races = Vec::new();
        for cell in &self.cells {
            let Some(form) = cell.form(selection.scale) else {
                continue;
            };
            for swept in values(cell, form, selection.processors) {
                let full = format!("{}/{}", self.name, cell.name);
                if !wanted(&full, swept, selection.only) {
                    continue;
                }
                let race = self.race(cell, form, swept, selection, full);
                // If none of a restricted cell's entrants was requested, the cell has no race.
                if cell.entrants.is_empty() || !race.allocators.is_empty() {
                    races.push(race);
                }
            }
        }
        races
    }

    fn race(
        &self,
        cell: &Cell,
        form: &Form,
        swept: Option<u64>,
        selection: &Selection<'_>,
        full: String,
    ) -> Race {
        let mut words: Vec<String> = cell.words.iter().chain(&form.words).cloned().collect();
        let mut title = format!("{}: {}", self.name, cell.title);
        let parameter = cell.sweep.as_ref().map(|sweep| sweep.parameter.as_str());
        if let (Some(parameter), Some(value)) = (parameter, swept) {
            words.push(format!("{parameter}={value}"));
            title = format!("{title}, {value} {parameter}");
        }
        Race {
            cell: full,
            title,
            workload: cell.workload.clone(),
            words,
            swept,
            sweeps_threads: parameter == Some("threads"),
            baseline: self.baseline.clone(),
            allocators: self.rivals(cell, selection),
            rounds: form.rounds,
            most_rounds: form.most_rounds,
            memory_runs: cell.memory_runs,
            factor: factor(cell, form),
        }
    }

    /// Returns the names of the rivals in a cell. A rival that was requested by name races at every
    /// scale. If it is restricted to certain cells, it races only in those. A cell that is
    /// restricted to some entrants admits no others.
    fn rivals(&self, cell: &Cell, selection: &Selection<'_>) -> Vec<String> {
        let fits = |one: &&Entrant| one.races_in(cell);
        let names: Vec<&String> = if selection.allocators.is_empty() {
            let racing = self.entrants.iter().filter(fits);
            let racing = racing.filter(|one| one.races_at(selection.scale));
            racing.filter_map(|one| one.allocator.as_ref()).collect()
        } else {
            let asked = selection.allocators.iter();
            let confined = |name: &&String| {
                let mut own = self.entrants.iter();
                let own = own.find(|one| one.allocator.as_ref() == Some(name));
                own.map_or(cell.entrants.is_empty(), |one| fits(&one))
            };
            asked.filter(confined).collect()
        };
        let rivals = names.into_iter().filter(|name| **name != self.baseline);
        rivals.cloned().collect()
    }

    /// Adds allocators that were requested by name to the suite's entrants, so that they have rows.
    pub fn admit(&mut self, allocators: &[String]) {
        for name in allocators {
            let known = |one: &Entrant| one.allocator.as_ref() == Some(name);
            if !self.entrants.iter().any(known) {
                self.entrants.push(Entrant {
                    name: name.clone(),
                    allocator: Some(name.clone()),
                    absent: None,
                    added: true,
                    not_in_quick: false,
                    cells: Vec::new(),
                    note: None,
                });
            }
        }
    }

    /// Marks the entrants of an allocator as unavailable. Their reason becomes `reason` if the
    /// registry knows the allocator, or if the suite gives no reason.
    pub fn take(&mut self, allocator: &str, reason: &str, in_registry: bool) {
        for entrant in &mut self.entrants {
            if entrant.allocator.as_deref() == Some(allocator) {
                entrant.allocator = None;
                if in_registry || entrant.absent.is_none() {
                    entrant.absent = Some(reason.to_owned());
                }
            }
        }
    }
}

/// The smallest form of a race, for estimating the race's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Race with the parameters of the smallest form.
    pub race: Race,
    /// Number of operations of the estimated race, divided by the number in `race`.
    pub times: f64,
}

/// Returns the smallest form of `race`, for estimating the time of `race`. Returns `None` if
/// `suites` lacks the cell, if the cell has neither a quick nor a usual form, or if the ratio of
/// the numbers of operations is unknown.
pub fn probe(suites: &[Suite], race: &Race) -> Option<Probe> {
    let (suite, cell) = race.cell.split_once('/')?;
    let suite = suites.iter().find(|one| one.name == suite)?;
    let cell = suite.cell(cell)?;
    let form = cell.quick.as_ref().or(cell.usual.as_ref())?;
    let mut words: Vec<String> = cell.words.iter().chain(&form.words).cloned().collect();
    if let (Some(sweep), Some(value)) = (&cell.sweep, race.swept) {
        words.push(format!("{}={value}", sweep.parameter));
    }
    let times = times(cell, &race.words, &words)?;
    let race = Race {
        words,
        most_rounds: None,
        memory_runs: 0,
        ..race.clone()
    };
    Some(Probe { race, times })
}

impl Race {
    /// Converts the result of the race into a member of a collection.
    pub fn member(&self, result: RaceResult, processors: Vec<usize>) -> Member {
        Member {
            cell: self.cell.clone(),
            workload: self.workload.clone(),
            parameters: self.words.clone(),
            swept: self.swept,
            processors,
            factor: self.factor,
            result,
        }
    }

    /// Returns whether a collection's member is the result of this race: of its cell, swept value,
    /// workload and parameters.
    pub fn is(&self, member: &Member) -> bool {
        member.cell == self.cell
            && member.swept == self.swept
            && member.workload == self.workload
            && member.parameters == self.words
    }
}

/// Checks that every selector matches a cell of `suites`.
///
/// # Errors
/// When a selector matches no cell.
pub(crate) fn check_only(suites: &[Suite], only: &[String]) -> Result<(), SuiteError> {
    let cells = || {
        let of = |suite: &Suite| {
            let names = suite.cells.iter().map(|cell| &cell.name);
            names
                .map(|name| format!("{}/{name}", suite.name))
                .collect::<Vec<_>>()
        };
        suites.iter().flat_map(of)
    };
    let empty = |asked: &&String| !cells().any(|cell| picks(asked, &cell).is_some());
    match only.iter().find(empty) {
        None => Ok(()),
        Some(asked) => Err(SuiteError::UnknownCell {
            asked: asked.clone(),
            known: cells().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Returns the value that a selector requests, if any. The outer `None` means that the selector
/// does not match the cell.
fn picks(selector: &str, full: &str) -> Option<Option<u64>> {
    let (name, value) = match selector.rsplit_once('=') {
        Some((name, value)) => (name, Some(value.parse().ok()?)),
        None => (selector, None),
    };
    let (suite, cell) = full.split_once('/')?;
    [full, suite, cell].contains(&name).then_some(value)
}

fn wanted(full: &str, swept: Option<u64>, only: &[String]) -> bool {
    let fits = |selector: &String| match picks(selector, full) {
        Some(None) => true,
        Some(value) => value == swept,
        None => false,
    };
    only.is_empty() || only.iter().any(fits)
}

/// Returns the values of the parameter that a cell sweeps; a single `None` if it sweeps no
/// parameter.
fn values(cell: &Cell, form: &Form, processors: usize) -> Vec<Option<u64>> {
    let Some(sweep) = &cell.sweep else {
        return vec![None];
    };
    let mut values = form.values.clone().unwrap_or_else(|| sweep.values.clone());
    if form.values.is_none() {
        let fits = |value: &&u64| usize::try_from(**value).is_ok_and(|value| value <= processors);
        values.extend(sweep.with_as_many_processors.iter().filter(fits));
    }
    values.into_iter().map(Some).collect()
}

/// Returns the number of operations in the published form, divided by the number in `form`; `None`
/// if there is no published form, or a number of operations is unknown.
fn factor(cell: &Cell, form: &Form) -> Option<f64> {
    let published = cell.published.as_ref()?;
    if cell.counts.is_empty() {
        return None;
    }
    let [published, run] = [published, form].map(|form| {
        let words = cell.words.iter().chain(&form.words);
        words.cloned().collect::<Vec<_>>()
    });
    times(cell, &published, &run)
}

/// Returns the number of operations of a run with the parameters `more`, divided by the number with
/// the parameters `less`; `None` if either is unknown.
fn times(cell: &Cell, more: &[String], less: &[String]) -> Option<f64> {
    if more == less {
        return Some(1.0);
    }
    let [more, less] = [more, less].map(|words| {
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        pairs.collect::<BTreeMap<_, _>>()
    });
    let mut times = 1.0;
    for (name, power) in &cell.counts {
        let number = |words: &BTreeMap<&str, &str>| words.get(name.as_str())?.parse::<f64>().ok();
        times *= (number(&more)? / number(&less)?).powi(*power);
    }
    (!cell.counts.is_empty()).then_some(times)
}
