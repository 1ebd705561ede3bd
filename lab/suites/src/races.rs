//! From a suite to the races to run.

use std::collections::BTreeMap;

use heapdrome_schema::{Member, RaceResult, Scale};

use crate::definition::{Cell, Form};
use crate::{Entrant, Suite, SuiteError};

/// One race to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The suite and the cell, such as `rpmalloc/16-1000`.
    pub cell: String,
    /// What it is, for progress.
    pub title: String,
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub words: Vec<String>,
    /// The value of the parameter that the cell sweeps.
    pub swept: Option<u64>,
    /// Whether that parameter is the number of threads, so that processors can be chosen for it.
    pub sweeps_threads: bool,
    /// The baseline, by its name in the registry.
    pub baseline: String,
    /// The rivals, by theirs.
    pub allocators: Vec<String>,
    /// Rounds; with `most_rounds` the least.
    pub rounds: u32,
    /// The most rounds, where an entrant runs no more once every target on it is decided.
    pub most_rounds: Option<u32>,
    /// Untimed runs that watch memory.
    pub memory_runs: u32,
    /// How many times the published setting does what one run does.
    pub factor: Option<f64>,
}

/// Which races of a suite are wanted.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    /// How much of each.
    pub scale: Scale,
    /// Processors of the machine.
    pub processors: usize,
    /// Cells, as `cell`, `suite/cell`, `suite` or any of them with `=value`; empty for all.
    pub only: &'a [String],
    /// Rivals instead of the suite's, by names of the registry; empty for the suite's own.
    pub allocators: &'a [String],
}

impl Suite {
    /// The races to run. Which of the suite's allocators can be had is the caller's business: see
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
                // Of those that a cell is for, none may have been asked for.
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

    /// The names of the rivals in a cell. One that was asked for by name is not held to the scale,
    /// but it is to the cells that it is confined to; a cell that is for some entrants is for no
    /// other.
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

    /// Makes allocators that were asked for by name entrants of the suite, so that they have rows.
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

    /// Takes entrants out whose allocator cannot be had here; `reason` is what to tell of them
    /// where the registry knows the allocator, or the suite does not say itself why it has none.
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

/// The smallest form of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The race.
    pub race: Race,
    /// How many times as much the race does that it stands for.
    pub times: f64,
}

/// The smallest form of `race`, from whose time that of the race can be estimated; `None` where
/// how much it does is not known.
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
    /// A finished race as a member of a collection.
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

    /// Whether a collection's member is this very race.
    pub fn is(&self, member: &Member) -> bool {
        member.cell == self.cell
            && member.swept == self.swept
            && member.workload == self.workload
            && member.parameters == self.words
    }
}

/// Checks that every selector picks a cell of `suites`.
///
/// # Errors
/// When one picks nothing.
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

/// Whether a selector picks a cell, and if so, the value that it asks for.
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

/// The values of the parameter that a cell sweeps; one `None` where it sweeps none.
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

/// How many times the published form does what `form` does; `None` where there is none, or the
/// counts of either are not known.
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

/// How many times a run with the words `more` does what one with the words `less` does; `None`
/// where a count of either is not known.
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
