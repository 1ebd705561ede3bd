//! Pairs of corresponding races in two results, and the allocators in both.

use std::path::Path;

use heapdrome_schema::{Collection, EntrantResult, Member, RaceResult, Role, Saved, Status};
use heapdrome_suites::present_name;

use crate::failure::Failure;
use crate::program;

/// Two races of the same command or workload.
pub struct Pair<'a> {
    /// Name of the cell in the new collection, with the swept value; `None` for single races.
    pub cell: Option<String>,
    /// Race in the old result.
    pub old: &'a RaceResult,
    /// Race in the new result.
    pub new: &'a RaceResult,
}

/// Common races of two results.
pub struct Pairs<'a> {
    /// Pairs of races, in the order of the new result.
    pub pairs: Vec<Pair<'a>>,
    /// Descriptions of the races that one result lacks, or that have no complete round in a result.
    pub unmatched: Vec<String>,
    /// Races that had rounds in the old result and have none in the new one.
    pub lost: Vec<Lost<'a>>,
}

/// A race that had rounds in the old result and has none in the new one.
pub struct Lost<'a> {
    /// Name of the race's cell in the new collection, with the swept value.
    pub cell: String,
    /// Race in the old result.
    pub old: &'a RaceResult,
}

/// An allocator with valid rows in both races.
pub struct Both<'a> {
    /// Row in the old race.
    pub old: &'a EntrantResult,
    /// Row in the new race.
    pub new: &'a EntrantResult,
}

impl<'a> Pair<'a> {
    fn place(&self) -> String {
        self.cell.clone().unwrap_or_default()
    }

    /// Returns the rows of the baseline, if it has the same name and a valid row in both races.
    pub fn baseline(&self) -> Option<Both<'a>> {
        (self.old.baseline == self.new.baseline)
            .then(|| self.both(&self.new.baseline))
            .flatten()
    }

    /// Returns whether both races have a baseline of the same name, library and settings, as far as
    /// is known.
    pub fn same_baseline(&self) -> bool {
        self.baseline().is_some_and(|both| both.is_same_library())
    }

    /// Returns the allocators with valid rows in both races, in the order of the new race. The
    /// baseline is included only on the same machine, where figures are compared directly.
    pub fn compared(&self, same_machine: bool) -> Vec<Both<'a>> {
        let rows = self.new.entrants.iter();
        let wanted = rows.filter(|row| match row.role {
            Role::Rival => true,
            Role::Baseline => same_machine,
            Role::Twin => false,
        });
        wanted.filter_map(|row| self.both(&row.allocator)).collect()
    }

    fn both(&self, allocator: &str) -> Option<Both<'a>> {
        Some(Both {
            old: self.old.row(allocator)?,
            new: self.new.row(allocator)?,
        })
    }

    /// Returns the allocators of either race that are not compared, each with the reason.
    pub fn not_compared(&self) -> Vec<(String, String)> {
        let names = |result: &'a RaceResult| {
            let rows = result.entrants.iter();
            let rows = rows.filter(|row| row.role != Role::Twin);
            rows.map(|row| row.allocator.as_str())
        };
        let mut all: Vec<&str> = names(self.new).collect();
        all.extend(names(self.old).filter(|name| !names(self.new).any(|new| new == *name)));
        all.into_iter()
            .filter(|name| self.both(name).is_none())
            .map(|name| {
                let old = state(self.old, name);
                (
                    name.to_owned(),
                    format!(
                        "{old} in the old race, {} in the new",
                        state(self.new, name)
                    ),
                )
            })
            .collect()
    }

    /// Returns whether an allocator has a valid row in the old race and an invalid one in the new
    /// race.
    pub fn fails_now(&self, allocator: &str) -> bool {
        let failed = |row: &EntrantResult| {
            row.allocator == allocator && row.role != Role::Twin && row.status != Status::Ok
        };
        self.old.row(allocator).is_some() && self.new.entrants.iter().any(failed)
    }
}

impl Both<'_> {
    /// Returns whether both races used the same library and settings for this allocator, as far as
    /// is known.
    pub fn is_same_library(&self) -> bool {
        self.old.version == self.new.version
            && self.old.settings == self.new.settings
            && match (&self.old.sha256, &self.new.sha256) {
                (Some(old), Some(new)) => old == new,
                _ => true,
            }
    }
}

/// Returns the status of an allocator in a race, in words.
fn state(result: &RaceResult, allocator: &str) -> &'static str {
    let row = result
        .entrants
        .iter()
        .find(|row| row.allocator == allocator);
    match row.map(|row| row.status) {
        None => "absent",
        Some(Status::Ok) => "sound",
        Some(Status::Failed) => "failed",
        Some(Status::NotServed) => "not served",
        Some(Status::Timeout) => "out of time",
    }
}

/// Returns the common races of two results.
///
/// # Errors
/// When one result is a race and the other a collection, the commands differ, no race is common, or
/// no allocator has valid rows in both. Also when the machines differ and no race has the same
/// baseline in both results.
pub fn pairs<'a>(old: &'a Saved, new: &'a Saved, same_machine: bool) -> Result<Pairs<'a>, Failure> {
    let found = match (old, new) {
        (Saved::Race(old), Saved::Race(new)) => single(old, new)?,
        (Saved::Collection(old), Saved::Collection(new)) => collections(old, new)?,
        (Saved::Race(_), Saved::Collection(_)) => return Err(kinds("a race", "a collection")),
        (Saved::Collection(_), Saved::Race(_)) => return Err(kinds("a collection", "a race")),
    };
    if let (false, Some(pair)) = (same_machine, found.pairs.first())
        && found.pairs.iter().all(|pair| pair.baseline().is_none())
    {
        return Err(Failure::Usage(format!(
            "the machines differ, so ratios to the baseline are compared, but the baseline is {} in the old \
             result and {} in the new; race both with the same --baseline",
            pair.old.baseline, pair.new.baseline
        )));
    }
    if found
        .pairs
        .iter()
        .all(|pair| pair.compared(same_machine).is_empty())
    {
        return Err(Failure::usage(
            "no allocator counts in both results, so there is nothing to compare; heapdrome show lists the entrants",
        ));
    }
    Ok(found)
}

fn kinds(old: &str, new: &str) -> Failure {
    Failure::Usage(format!(
        "the old result is {old} and the new one {new}; compare two of a kind"
    ))
}

fn single<'a>(old: &'a RaceResult, new: &'a RaceResult) -> Result<Pairs<'a>, Failure> {
    let (before, after) = (what(old), what(new));
    if before != after {
        return Err(Failure::Usage(format!(
            "the results are of different commands: '{}' and '{}'",
            program::one_line(&before.join(" ")),
            program::one_line(&after.join(" "))
        )));
    }
    Ok(Pairs {
        pairs: vec![Pair {
            cell: None,
            old,
            new,
        }],
        unmatched: Vec::new(),
        lost: Vec::new(),
    })
}

fn collections<'a>(old: &'a Collection, new: &'a Collection) -> Result<Pairs<'a>, Failure> {
    let without = [old, new].into_iter().find(|one| one.races.is_empty());
    match without {
        Some(one) => Err(Failure::Usage(format!(
            "a result of {} has no races, and results of this kind cannot be compared yet; heapdrome \
             report shows several on one page",
            program::one_line(&one.name)
        ))),
        None => members(&old.races, &new.races),
    }
}

fn members<'a>(old: &'a [Member], new: &'a [Member]) -> Result<Pairs<'a>, Failure> {
    let same = |a: &Member, b: &Member| {
        present_name(&a.cell) == present_name(&b.cell)
            && a.swept == b.swept
            && what(&a.result) == what(&b.result)
    };
    let lonely = |one: &Member, others: &[Member]| !others.iter().any(|other| same(one, other));
    let both = new.iter().filter_map(|new| {
        let old = old.iter().find(|old| same(old, new))?;
        Some(Pair {
            cell: Some(place(new)),
            old: &old.result,
            new: &new.result,
        })
    });
    let (pairs, empty): (Vec<_>, Vec<_>) =
        both.partition(|pair| pair.old.rounds > 0 && pair.new.rounds > 0);
    if pairs.is_empty() {
        return Err(Failure::usage(
            "the results have no race in common: no cell with the same workload and parameters, and \
             a complete round in both",
        ));
    }
    let told = |one: &Member, which: &str| format!("{}: in the {which} result only", place(one));
    let only_old = old.iter().filter(|one| lonely(one, new));
    let only_new = new.iter().filter(|one| lonely(one, old));
    let unmatched = only_old.map(|one| told(one, "old"));
    let unmatched = unmatched.chain(only_new.map(|one| told(one, "new")));
    let unmatched = unmatched.chain(empty.iter().map(without_rounds));
    let lost = empty.iter().filter(|pair| pair.old.rounds > 0);
    let lost = lost.map(|pair| Lost {
        cell: pair.place(),
        old: pair.old,
    });
    Ok(Pairs {
        unmatched: unmatched.collect(),
        lost: lost.collect(),
        pairs,
    })
}

/// Explains why two corresponding races cannot be compared.
fn without_rounds(pair: &Pair<'_>) -> String {
    let which = match (pair.old.rounds, pair.new.rounds) {
        (0, 0) => "either result",
        (0, _) => "the old result",
        _ => "the new result",
    };
    format!("{}: no complete round in {which}", pair.place())
}

/// Returns the name of a member's cell. Adds the swept value if the name has no value.
fn place(member: &Member) -> String {
    match member.swept {
        Some(value) if !member.cell.contains('=') => format!("{} at {value}", member.cell),
        _ => member.cell.clone(),
    }
}

/// Returns the words that identify what was raced: the workload's line, or the command with its
/// program's name in place of its path.
pub fn what(result: &RaceResult) -> Vec<String> {
    if let Some(line) = &result.options.workload {
        return shlex::split(line).unwrap_or_else(|| vec![line.clone()]);
    }
    let mut words = result.command.clone();
    if let Some(first) = words.first_mut() {
        let name = Path::new(first.as_str()).file_name();
        if let Some(name) = name.map(|name| name.to_string_lossy().into_owned()) {
            *first = name;
        }
    }
    words
}
