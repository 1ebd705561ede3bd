//! State of a race, computed from its journal.

use std::collections::BTreeMap;

use heapdrome_schema::{Coverage, Evidence, JournalLine, Machine, MemoryRun, Plan, Proof, Run};

use crate::Failure;

pub(crate) struct State {
    pub(crate) plan: Plan,
    pub(crate) machine: Machine,
    pub(crate) runs: Vec<Run>,
    pub(crate) proofs: Vec<Option<Proof>>,
    pub(crate) memory_runs: Vec<MemoryRun>,
    pub(crate) evidence: Vec<Option<Evidence>>,
    pub(crate) failures: Vec<Failure>,
    /// Number of rounds of each decided entrant. The key is the entrant's position in the plan.
    pub(crate) decided: BTreeMap<usize, u32>,
    /// Remarks for the reader of the result.
    pub(crate) remarks: Vec<String>,
    pub(crate) finished: Option<String>,
}

impl State {
    pub(crate) fn new(plan: Plan, machine: Machine) -> Self {
        Self {
            proofs: vec![None; plan.entrants.len()],
            evidence: vec![None; plan.entrants.len()],
            plan,
            machine,
            runs: Vec::new(),
            memory_runs: Vec::new(),
            failures: Vec::new(),
            decided: BTreeMap::new(),
            remarks: Vec::new(),
            finished: None,
        }
    }

    /// Applies a line of the journal. A later plan replaces the earlier one, and clears all proofs
    /// and evidence; its machine is ignored.
    pub(crate) fn apply(&mut self, line: JournalLine) {
        match line {
            JournalLine::Plan { plan, .. } => {
                self.proofs = vec![None; plan.entrants.len()];
                self.evidence = vec![None; plan.entrants.len()];
                self.plan = *plan;
            }
            JournalLine::Proof { entrant, proof } => {
                if let Some(place) = self.proofs.get_mut(entrant) {
                    *place = Some(proof);
                }
            }
            JournalLine::Evidence { entrant, evidence } => {
                if let Some(place) = self.evidence.get_mut(entrant) {
                    *place = Some(*evidence);
                }
            }
            JournalLine::Memory(run) => self.memory_runs.push(run),
            JournalLine::Run(run) => self.runs.push(*run),
            JournalLine::Failed {
                entrant,
                ending,
                during,
                stderr_tail,
            } => {
                self.failures.push(Failure {
                    entrant,
                    ending,
                    during,
                    stderr_tail,
                });
            }
            JournalLine::Decided {
                entrant, rounds, ..
            } => {
                self.decided.insert(entrant, rounds);
            }
            JournalLine::Limits { stopping } => {
                self.plan.stopping = stopping;
                self.finished = None;
            }
            JournalLine::Remark { text } => self.remarks.push(text),
            JournalLine::Finished { reason } => self.finished = Some(reason),
        }
    }

    /// Returns whether the entrant still runs: its runs count ([`State::counts`]), and it is not
    /// decided.
    pub(crate) fn is_racing(&self, entrant: usize) -> bool {
        self.counts(entrant) && !self.decided.contains_key(&entrant)
    }

    /// Returns whether the runs of `entrant` count: it has not failed, and its latest proof, if
    /// any, does not show [`Coverage::TooLittle`].
    pub(crate) fn counts(&self, entrant: usize) -> bool {
        let proof = self.proofs.get(entrant).and_then(Option::as_ref);
        let served = proof.is_none_or(|proof| proof.coverage != Coverage::TooLittle);
        served
            && self
                .failures
                .iter()
                .all(|failure| failure.entrant != entrant)
    }

    /// Returns the entrants that failed in the phase `during`, such as `round 3`.
    pub(crate) fn failed_during(&self, during: &str) -> impl Iterator<Item = usize> {
        let failures = self.failures.iter();
        failures
            .filter(move |failure| failure.during == during)
            .map(|failure| failure.entrant)
    }

    /// Returns the number of rounds that every entrant still in the race has run; 0 if no entrant
    /// is racing. Every entrant runs every round until it stops, so the result is the lowest number
    /// of runs of a racing entrant.
    pub(crate) fn complete_rounds(&self) -> u32 {
        let mut counts = vec![0_u32; self.plan.entrants.len()];
        for run in &self.runs {
            if let Some(count) = counts.get_mut(run.entrant) {
                *count += 1;
            }
        }
        let racing = counts
            .iter()
            .enumerate()
            .filter(|(entrant, _)| self.is_racing(*entrant));
        racing.map(|(_, &count)| count).min().unwrap_or(0)
    }

    pub(crate) fn has_run(&self, round: u32, entrant: usize) -> bool {
        self.runs_in(round).any(|run| run.entrant == entrant)
    }

    /// Returns the recorded runs of a round, the latest first. The search begins at the end,
    /// because runs are recorded in the order of rounds.
    pub(crate) fn runs_in(&self, round: u32) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .rev()
            .take_while(move |run| run.round >= round)
            .filter(move |run| run.round == round)
    }
}
