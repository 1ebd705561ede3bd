//! Data of a race so far, and the estimates from them.

use std::collections::BTreeMap;

use heapdrome_schema::{
    Coverage, Ending, Evidence, Finding, Machine, MemoryRun, Plan, Proof, Role, Run, Status,
};
use heapdrome_statistics::{Estimate, Rounds};

use super::figures::Compared;
use super::rules::Rules;

/// Data of a race, from which its result is computed.
pub struct Material<'a> {
    /// Plan of the race.
    pub plan: &'a Plan,
    /// Machine on which the race runs.
    pub machine: &'a Machine,
    /// Timed runs, in the order in which they ended.
    pub runs: &'a [Run],
    /// Latest proof of each entrant that has one.
    pub proofs: &'a BTreeMap<usize, Proof>,
    /// Entrants that failed and left the race, each with its failure.
    pub failures: &'a BTreeMap<usize, Finding>,
    /// Entrants that were decided and stopped, each with its number of rounds.
    pub decided: &'a BTreeMap<usize, u32>,
    /// Findings of the tracked runs, by entrant.
    pub evidence: &'a [Option<Evidence>],
    /// Untimed runs that measured the memory of the process tree.
    pub memory: &'a [MemoryRun],
    /// Remarks on events during the race.
    pub remarks: &'a [String],
    /// Reason for the end of the race; before the end, its state.
    pub ended: &'a str,
}

impl Material<'_> {
    /// Returns the positions of the baseline's twin and of the rivals, if their rows are valid.
    pub(super) fn beside_the_baseline(&self) -> impl Iterator<Item = usize> {
        let entrants = 0..self.plan.entrants.len();
        entrants.filter(|e| {
            self.plan.entrants[*e].role != Role::Baseline && self.status(*e) == Status::Ok
        })
    }

    /// Returns the timed runs of an entrant.
    pub(super) fn of_entrant(&self, entrant: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.entrant == entrant)
    }

    /// Returns the number of rounds that every entrant still racing has finished; 0 if none races.
    pub fn complete_rounds(&self) -> u32 {
        let racing = (0..self.plan.entrants.len())
            .filter(|e| self.status(*e) == Status::Ok && !self.decided.contains_key(e));
        let finished = racing.map(|e| self.of_entrant(e).count());
        finished
            .min()
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0)
    }

    /// Returns the status of an entrant's row: `Ok`, or the reason why the row is invalid.
    pub(super) fn status(&self, entrant: usize) -> Status {
        match self.failures.get(&entrant).map(|finding| finding.ending) {
            Some(Ending::TimedOut) => return Status::Timeout,
            Some(_) => return Status::Failed,
            None => {}
        }
        match self.proofs.get(&entrant).map(|proof| proof.coverage) {
            None if self.plan.options.unproven => Status::Ok,
            Some(Coverage::TooLittle) | None => Status::NotServed,
            Some(Coverage::Whole | Coverage::Most) => Status::Ok,
        }
    }

    /// Returns a figure of every entrant, round by round. NaN stands for a round without the
    /// figure.
    fn by_round(&self, of: impl Fn(&Run) -> Option<f64>) -> Vec<Vec<f64>> {
        let mut figures = vec![Vec::new(); self.plan.entrants.len()];
        for run in self.runs {
            let (own, round) = (&mut figures[run.entrant], run.round as usize);
            if own.len() <= round {
                own.resize(round + 1, f64::NAN);
            }
            own[round] = of(run).unwrap_or(f64::NAN);
        }
        figures
    }

    /// Returns the ratio of an entrant's figure to the baseline's, from the rounds in which both
    /// have it; `None` if these rounds are too few.
    pub(super) fn estimate(
        &self,
        rules: &Rules,
        entrant: usize,
        figure: &Compared<'_>,
    ) -> Option<Estimate> {
        let figures = self.by_round(|run| figure.of(run));
        let figures = figures.iter().map(Vec::as_slice);
        let baseline = self.plan.baseline();
        let mut entrants = self.plan.entrants.iter();
        let twin = entrants.position(|entrant| entrant.role == Role::Twin);
        let both = twin.map(|twin| [baseline, twin]);
        let rounds = Rounds::new(figures, both, figure.resolution());
        rules
            .of(figure.name())
            .compare_within(&rounds, entrant, baseline)
    }
}
