//! Who runs no more rounds, since every target on it is decided.

use std::collections::BTreeMap;

use heapdrome_record::{JournalLine, Plan, RaceResult};
use heapdrome_suites::{Decided, Race, Suite};

use super::assembling::assemble;
use super::contest::{Contest, Ended};
use super::measure_failure;
use crate::failure::Failure;

/// The targets of a suite on one of its races.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The suite.
    pub suite: Suite,
    /// The race.
    pub race: Race,
}

impl Judge {
    /// Who is decided, as the race stands.
    fn decided(&self, result: RaceResult) -> Decided {
        self.suite.decided(&self.race.member(result, Vec::new()))
    }
}

impl Contest {
    /// Lets those run no more rounds on whom every target is decided; says how the race ends where none is open.
    /// A race that is resumed by its own name has no judge, and who was not decided before runs to the end.
    pub(super) fn leave_out_decided(&mut self) -> Result<Option<Ended>, Failure> {
        let rounds = self.race.complete_rounds();
        let more = rounds < self.race.plan().stopping.max_rounds;
        let Some(judge) = self.judge.as_ref().filter(|_| more) else {
            return Ok(None);
        };
        let found = judge.decided(self.with_material("", assemble));
        if found.all {
            let reason = format!("every target on it was decided after {rounds} rounds");
            return Ok(Some(Ended::Done(reason)));
        }
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
            let names = names.join(", ");
            self.progress.line(&format!(
                "decided after {rounds} rounds, and run no more: {names}"
            ));
        }
        Ok(None)
    }
}

/// The rounds that every entrant runs, where those that are decided run no more.
pub fn least_rounds(plan: &Plan) -> Option<u32> {
    let stopping = &plan.stopping;
    stopping.until_decided.then_some(stopping.min_rounds)
}

/// Who was decided before the end, and after how many rounds, from their places in the plan; `None` where nobody was.
pub fn remark(plan: &Plan, decided: &BTreeMap<usize, u32>) -> Option<String> {
    let mut by_rounds: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (entrant, rounds) in decided {
        let name = &plan.entrants[*entrant].name;
        by_rounds.entry(*rounds).or_default().push(name);
    }
    let told = by_rounds
        .iter()
        .map(|(rounds, names)| format!("after {rounds} rounds {}", names.join(", ")));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "decided, so that they ran no more rounds: {}",
            told.join("; ")
        )
    })
}
