//! The tables of a suite.

mod against;
mod degradation;
mod fast_path;
mod figures;
mod runs;
mod sweep;
mod text;

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use heapdrome_record::{Member, MisuseRun, Table};
use heapdrome_statistics::Rule;
use serde::Deserialize;

use crate::published::misfit;
use crate::racers::{EVERYONE, Span, compare, figure_of};
use crate::{Contender, PublishedTable, Suite, misuse};

pub(crate) use degradation::{data_ratio, degradation, pair};
pub(crate) use text::{NONE, interval, number};

/// Probability that any interval of one column of a table does not hold the true figure.
pub(crate) const ALPHA: f64 = 0.05;

/// A table to make.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// What it shows.
    pub title: String,
    /// What it is made of.
    pub makes: Makes,
    /// What a reader should know about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a table is made of.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Makes {
    /// Mean, deviation, user and system time, least and greatest of each allocator in a cell.
    Runs {
        /// The cell.
        cell: String,
    },
    /// Allocators against the values that a cell sweeps.
    Sweep {
        /// The cell.
        cell: String,
        /// The figure.
        figure: String,
        /// How it is shown.
        shown: Shown,
    },
    /// Cells against allocators.
    Cells {
        /// The cells.
        cells: Vec<String>,
        /// The figure.
        figure: String,
        /// How it is shown.
        shown: Shown,
    },
    /// `time(large) / time(small) / (size(large) / size(small))`.
    Degradation {
        /// The cell with more data.
        large: String,
        /// The cell with less.
        small: String,
        /// The figure that tells the size of the data.
        size: String,
    },
    /// The largest of the first runs, one column for each cell.
    Largest {
        /// The cells.
        cells: Vec<String>,
        /// The figure.
        figure: String,
        /// How many runs.
        of: usize,
        /// The unit.
        unit: Unit,
    },
    /// Mean and variance of a figure.
    Variance {
        /// The cell.
        cell: String,
        /// The figure.
        figure: String,
        /// The unit.
        unit: Unit,
    },
    /// How much less of each figure than under the baseline, in percent.
    Savings {
        /// The cell.
        cell: String,
        /// The figures.
        figures: Vec<String>,
    },
    /// Allocators against several figures of one race.
    Figures {
        /// The cell.
        cell: String,
        /// The figures.
        figures: Vec<String>,
        /// How they are shown.
        shown: Shown,
    },
    /// The ratio of one allocator to each of its rivals, rivals against races.
    Against(Against),
    /// How one allocator stands in each race: whom it does worst against, and how many rivals it
    /// keeps below the limit.
    Standing(Against),
    /// The geometric mean over all races of the ratio of one allocator to each of its rivals, and to
    /// whichever of them has the least in each race.
    Means(Against),
    /// How many instructions the fast paths of heapdrome's own libraries take, and may take.
    FastPath,
    /// How many kinds of misuse came to what, under each allocator that was misused.
    Misuse,
    /// What the suite itself lists: nothing of it is measured.
    Listed {
        /// The heads of its columns.
        heads: Vec<String>,
        /// Its rows, each with as many cells.
        rows: Vec<Vec<String>>,
    },
}

/// One allocator against its rivals.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// The allocator.
    pub of: String,
    /// Its rivals; where none are named, everyone that claims mean by `*`.
    #[serde(default = "everyone")]
    pub to: Vec<String>,
    /// The cells.
    pub cells: Vec<String>,
    /// The figure.
    pub figure: String,
    /// The ratio below which an interval must lie wholly, where there is such a target.
    pub below: Option<f64>,
    /// Whether a table of means also has that to whichever rival has the least in each race, which
    /// the target is about then.
    #[serde(default)]
    pub least: bool,
}

fn everyone() -> Vec<String> {
    vec![EVERYONE.to_owned()]
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The mean, in millions.
    Millions,
    /// The mean, in MiB.
    Mib,
    /// The mean as it is.
    Plain,
    /// The mean of what is above one, in percent.
    PercentAboveOne,
    /// The ratio to the baseline with its interval.
    Ratio,
    /// The baseline's figure over it, with its interval: a multiple where less is better.
    Inverse,
}

/// A unit of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// 1024 bytes, of a figure in bytes.
    KiB,
    /// 1024 times as much.
    MiB,
    /// 1024 times as much again.
    GiB,
}

impl Unit {
    /// How many of the figure's own units it is.
    pub(crate) fn size(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::KiB => 1024.0,
            Self::MiB => 1024.0 * 1024.0,
            Self::GiB => 1024.0 * 1024.0 * 1024.0,
        }
    }

    /// Its sign.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::KiB => "KiB",
            Self::MiB => "MiB",
            Self::GiB => "GiB",
        }
    }
}

impl TablePlan {
    /// The cells that it speaks of.
    pub(crate) fn cells(&self) -> Vec<&String> {
        match &self.makes {
            Makes::Runs { cell }
            | Makes::Sweep { cell, .. }
            | Makes::Variance { cell, .. }
            | Makes::Savings { cell, .. }
            | Makes::Figures { cell, .. } => vec![cell],
            Makes::Against(plan) | Makes::Standing(plan) | Makes::Means(plan) => {
                plan.cells.iter().collect()
            }
            Makes::Cells { cells, .. } | Makes::Largest { cells, .. } => cells.iter().collect(),
            Makes::Degradation { large, small, .. } => vec![large, small],
            Makes::FastPath | Makes::Misuse | Makes::Listed { .. } => Vec::new(),
        }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.makes {
            Makes::Listed { heads, rows } => misfit(&self.title, heads, rows),
            _ => None,
        }
    }

    /// The entrants that it names.
    pub(crate) fn entrants(&self) -> Vec<&String> {
        match &self.makes {
            Makes::Against(plan) | Makes::Standing(plan) | Makes::Means(plan) => {
                let named = plan.to.iter().filter(|name| *name != EVERYONE);
                std::iter::once(&plan.of).chain(named).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Every table of a suite that has a row, each published one after the measured one it belongs to;
/// none of a suite of which nothing was run.
pub(crate) fn make(suite: &Suite, members: &[&Member], runs: &[MisuseRun]) -> Vec<Table> {
    let mut tables = Vec::new();
    if !members.iter().any(|member| of_suite(suite, member)) {
        return tables;
    }
    let mut shown = vec![false; suite.published.len()];
    let mut publish = |tables: &mut Vec<Table>, wanted: &dyn Fn(&PublishedTable) -> bool| {
        for (published, shown) in suite.published.iter().zip(&mut shown) {
            if !*shown && wanted(published) {
                *shown = true;
                let mut table = published.table();
                table.title = format!("{}: {}", suite.name, table.title);
                tables.push(table);
            }
        }
    };
    for plan in &suite.tables {
        let made = one(suite, plan, members, runs).filter(|table| !table.rows.is_empty());
        if let Some(mut table) = made {
            table.title = format!("{}: {}", suite.name, table.title);
            tables.push(table);
            publish(&mut tables, &|one| one.after.as_ref() == Some(&plan.title));
        }
    }
    publish(&mut tables, &|one| one.after.is_none());
    tables
}

fn of_suite(suite: &Suite, member: &Member) -> bool {
    let name = member.cell.split_once('/').map(|(suite, _)| suite);
    name == Some(suite.name.as_str())
}

fn one(suite: &Suite, plan: &TablePlan, members: &[&Member], runs: &[MisuseRun]) -> Option<Table> {
    let (heads, rows, notes) = match &plan.makes {
        Makes::Runs { cell } => runs::runs(suite, cell, members),
        Makes::Variance { cell, figure, unit } => {
            runs::variance(suite, cell, figure, *unit, members)
        }
        Makes::Savings { cell, figures } => runs::savings(suite, cell, figures, members),
        Makes::Figures {
            cell,
            figures,
            shown,
        } => figures::table(suite, cell, figures, *shown, members),
        Makes::Against(plan) => against::ratios(suite, plan, members),
        Makes::Standing(plan) => against::standing(suite, plan, members),
        Makes::Means(plan) => against::means(suite, plan, members),
        Makes::Sweep {
            cell,
            figure,
            shown,
        } => sweep::sweep(suite, cell, figure, *shown, members),
        Makes::Cells {
            cells,
            figure,
            shown,
        } => sweep::cells(suite, cells, figure, *shown, members),
        Makes::Largest {
            cells,
            figure,
            of,
            unit,
        } => sweep::largest(suite, cells, (figure, *of, *unit), members),
        Makes::Degradation { large, small, size } => {
            degradation::table(suite, [large, small], size, members)
        }
        Makes::FastPath => Some(fast_path::table()),
        Makes::Misuse => {
            let (heads, rows) = misuse::scores(runs);
            Some((heads, rows, Vec::new()))
        }
        Makes::Listed { heads, rows } => Some((heads.clone(), rows.clone(), Vec::new())),
    }?;
    Some(Table {
        title: plan.title.clone(),
        published: None,
        heads,
        rows,
        notes: plan.notes.iter().cloned().chain(notes).collect(),
    })
}

/// Heads, rows and notes.
type Parts = (Vec<String>, Vec<Vec<String>>, Vec<String>);

/// The entrants of a suite that have an allocator, the document's first.
fn racing(suite: &Suite) -> impl Iterator<Item = (&Contender, &str)> {
    let own = |added| {
        let entrants = suite.entrants.iter();
        entrants.filter(move |one| one.added == added)
    };
    let all = own(false).chain(own(true));
    all.filter_map(|one| Some((one, one.allocator.as_deref()?)))
}

/// The rule for so many comparisons. Its boundary is computed once: a report asks for the same rule
/// in hundreds of races.
pub(crate) fn rule(comparisons: usize) -> Rule {
    static RULES: LazyLock<Mutex<BTreeMap<usize, Rule>>> = LazyLock::new(Mutex::default);
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = rules.entry(comparisons);
    let new = || Rule::new(ALPHA, comparisons);
    known.or_insert_with(new).clone()
}

/// The rule for the comparisons of one race.
fn rule_of(member: &Member) -> Rule {
    rule(member.result.entrants.len().saturating_sub(2))
}

/// The ratio of an allocator to the baseline within the rounds, with its interval where there are
/// rounds enough; `inverse` turns it over.
fn ratio_cell(
    member: &Member,
    rule: &Rule,
    (allocator, figure): (&str, &str),
    inverse: bool,
) -> Option<String> {
    let own = figure_of(member, allocator, figure)?;
    if allocator == member.result.baseline {
        return Some("1".to_owned());
    }
    let base = figure_of(member, &member.result.baseline, figure)?;
    let turn = |ratio: f64| if inverse { 1.0 / ratio } else { ratio };
    let both = [allocator, member.result.baseline.as_str()];
    Some(match compare(member, rule, both, figure, Span::Whole) {
        Some(found) => {
            let (mut low, mut high) = (turn(found.low), turn(found.high));
            if inverse {
                std::mem::swap(&mut low, &mut high);
            }
            interval(turn(found.ratio), low, high)
        }
        None => {
            let mean = |all: &[f64]| heapdrome_statistics::mean(all);
            number(turn(mean(&own)? / mean(&base)?))
        }
    })
}
