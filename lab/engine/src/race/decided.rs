//! Removal of entrants from later rounds once all comparisons with them are decided.

use std::collections::BTreeMap;

use heapdrome_schema::{JournalLine, Plan, spoken};
use heapdrome_statistics::{Leader, Standing, is_decided, leader_over};
use heapdrome_suites::Decided;

use super::contest::{Contest, Ended};
use super::judge::standings;
use super::material::Material;
use super::measure_failure;
use super::result::assemble;
use super::rules::Rules;
use crate::event::Found;
use crate::failure::Failure;

/// Returns the entrants that are beaten in the judged figures, and whether all others are decided.
fn by_figures(material: &Material<'_>, rules: &Rules, margin: f64) -> Decided {
    let (places, rivals): (Vec<usize>, Vec<Standing>) =
        standings(material, rules).into_iter().unzip();
    let plan = material.plan;
    let name = |place: usize| plan.entrants[places[place]].name.clone();
    let beaten: BTreeMap<usize, String> = (0..rivals.len())
        .filter_map(|place| {
            let leader = match leader_over(&rivals, place)? {
                Leader::Baseline => plan.entrants[plan.baseline()].name.clone(),
                Leader::Rival(other) => name(other),
            };
            Some((place, format!("{leader} is better in {}", figures(plan))))
        })
        .collect();
    let open = |place: &usize| {
        let left = material.decided.contains_key(&places[*place]);
        !left && !beaten.contains_key(place) && !is_decided(&rivals[*place], margin)
    };
    let all = !(0..rivals.len()).any(|place| open(&place));
    let entrants = beaten.into_iter();
    Decided {
        entrants: entrants.map(|(place, why)| (name(place), why)).collect(),
        all,
    }
}

/// Formats the names of the judged figures.
fn figures(plan: &Plan) -> String {
    let judged = plan.options.judged.iter();
    let names: Vec<&str> = judged.map(|name| spoken(name)).collect();
    names.join(" and ")
}

impl Contest {
    /// Stops the entrants that are decided, if the limits say so (`until_decided`). Returns the end
    /// of the race if all entrants are decided and the race has run its minimum number of rounds
    /// (`may_end`). In a race of a suite, the targets decide an entrant; in any other race, the
    /// judged figures do. A race of a suite that is resumed by the race's name, not by the suite's
    /// file, does not know the targets, so its undecided entrants run to the end.
    pub(super) fn leave_out_decided(&mut self, may_end: bool) -> Result<Option<Ended>, Failure> {
        let rounds = self.race.complete_rounds();
        let stopping = self.race.plan().stopping.clone();
        if rounds >= stopping.max_rounds {
            return Ok(None);
        }
        let found = match (&self.judge, stopping.margin) {
            (Some(judge), _) => judge.decided(self.with_material("", assemble)),
            (None, Some(margin)) => {
                self.with_material("", |material, rules| by_figures(material, rules, margin))
            }
            (None, None) => return Ok(None),
        };
        if found.all && may_end {
            return Ok(Some(Ended::Done(self.all_decided(rounds))));
        }
        if stopping.until_decided {
            self.leave(found, rounds)?;
        }
        Ok(None)
    }

    /// Explains the end of a race in which everything is decided.
    fn all_decided(&self, rounds: u32) -> String {
        let plan = self.race.plan();
        match plan.stopping.margin {
            Some(margin) if self.judge.is_none() => format!(
                "decided after {rounds} rounds: for every entrant still racing, each interval of {} shows a difference or excludes one above {}%",
                figures(plan),
                100.0 * margin
            ),
            _ => format!("every target of the race was decided after {rounds} rounds"),
        }
    }

    /// Removes decided entrants from later rounds.
    fn leave(&mut self, found: Decided, rounds: u32) -> Result<(), Failure> {
        let mut names = Vec::new();
        for (name, because) in found.entrants {
            let mut entrants = self.race.plan().entrants.iter();
            let Some(entrant) = entrants.position(|entrant| entrant.name == name) else {
                continue;
            };
            if !self.race.is_racing(entrant) {
                continue;
            }
            let line = JournalLine::Decided {
                entrant,
                rounds,
                because,
            };
            self.race.record(line).map_err(measure_failure)?;
            names.push(name);
        }
        if !names.is_empty() {
            let entrants = &names;
            self.progress.found(Found::Decided { rounds, entrants });
        }
        Ok(())
    }
}
