//! Check that all entrants do the same work. Otherwise their times are not comparable.
//!
//! A command may leave results that reduce the work of its next run, as a build does. Therefore the
//! proofs count calls, requested bytes and processes of each entrant's run, and these counts are
//! compared before any timing.

use heapdrome_report::count;
use heapdrome_schema::{Bytes, Plan, Proof, Role};

use super::contest::{Contest, Ended};
use crate::event::Aim;
use crate::failure::Failure;

/// Maximum relative difference in calls, bytes or processes between runs of equal work. Allocators
/// grow and align blocks differently, and a program that queries the usable size of a block adapts
/// to it.
const SHARE: f64 = 0.05;

/// Absolute difference in calls that is always allowed. At a tenth of a microsecond each, these
/// calls take less time than starting a process. Runtimes make some hundreds of calls at start.
const FEW_CALLS: u64 = 1_000;

/// Absolute difference in bytes that is always allowed. The page faults on these bytes take less
/// time than starting a process.
const FEW_BYTES: u64 = 1 << 20;

/// Differences in calls and in bytes that are always allowed for each process. An allocator may
/// load a C++ runtime that the program does not need, and this runtime allocates 72,704 bytes.
const AT_START: (u64, u64) = (32, 128 << 10);

/// Absolute difference in processes that is always allowed, because shells and build tools
/// occasionally start a helper.
const FEW_PROCESSES: u64 = 1;

/// Multiple of the spread of the baseline's own runs up to which a difference is allowed.
const SPREADS: u64 = 3;

/// Number of further baseline runs after a difference was found.
const REPEATS: usize = 2;

/// Work of one run: the counts of the witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    calls: u64,
    /// Requested bytes; 0 if unknown, as in proofs of an older heapdrome.
    bytes: u64,
    processes: u64,
}

impl Work {
    fn of(proof: &Proof) -> Self {
        Self {
            calls: proof.calls,
            bytes: proof.requested_bytes,
            processes: proof.processes,
        }
    }

    fn words(self) -> String {
        let (calls, processes) = (count(self.calls, "call"), count(self.processes, "process"));
        match self.bytes {
            0 => format!("{calls} in {processes}"),
            bytes => format!("{calls} for {} in {processes}", Bytes(bytes)),
        }
    }
}

/// Returns the difference between the maximum and the minimum of each count over several runs.
fn spread(runs: &[Work]) -> Work {
    let range = |of: fn(&Work) -> u64| {
        let ends = runs.iter().map(of).max().zip(runs.iter().map(of).min());
        ends.map_or(0, |(most, least)| most - least)
    };
    Work {
        calls: range(|run| run.calls),
        bytes: range(|run| run.bytes),
        processes: range(|run| run.processes),
    }
}

/// Returns whether two runs differ by more than runs of equal work do.
fn differ(one: Work, other: Work, spread: Work) -> bool {
    let far = |one: u64, other: u64, few: u64, spread: u64| {
        let share = (SHARE * one.max(other) as f64) as u64;
        let allowed = share.max(few).max(spread.saturating_mul(SPREADS));
        one.abs_diff(other) > allowed
    };
    let known = one.bytes > 0 && other.bytes > 0;
    let processes = one.processes.min(other.processes);
    let few_calls = FEW_CALLS.max(processes.saturating_mul(AT_START.0));
    let few_bytes = FEW_BYTES.max(processes.saturating_mul(AT_START.1));
    far(one.calls, other.calls, few_calls, spread.calls)
        || known && far(one.bytes, other.bytes, few_bytes, spread.bytes)
        || far(
            one.processes,
            other.processes,
            FEW_PROCESSES,
            spread.processes,
        )
}

/// Runs that did different work.
#[derive(Debug, PartialEq, Eq)]
enum Difference {
    /// The baseline's first run differs from all later runs. The value is the work of a later run.
    First(Work),
    /// Some rivals differ. The values are their positions in the list of rivals.
    Rivals(Vec<usize>),
}

/// Compares the baseline's `first` run with the runs of `rivals` and with the baseline's later runs
/// `again`, which may be empty. Returns `None` if they did the same work.
fn difference(first: Work, rivals: &[Work], again: &[Work]) -> Option<Difference> {
    let differs_first = |later: &&Work| differ(first, **later, spread(again));
    if !again.is_empty() && again.iter().filter(differs_first).count() == again.len() {
        return again.last().map(|later| Difference::First(*later));
    }
    let own = [&[first], again].concat();
    let spread = spread(&own);
    let mean = |of: fn(&Work) -> u64| own.iter().map(of).sum::<u64>() / own.len() as u64;
    let mean = Work {
        calls: mean(|run| run.calls),
        bytes: mean(|run| run.bytes),
        processes: mean(|run| run.processes),
    };
    let others: Vec<usize> = (0..rivals.len())
        .filter(|place| differ(mean, rivals[*place], spread))
        .collect();
    let alike = |one: &Work| !differ(rivals[0], *one, Work::default());
    // If there are several rivals, and all agree with each other but not with the first run, the
    // first run probably left results that changed the work of all later runs.
    let all = others.len() == rivals.len() && rivals.len() > 1 && rivals.iter().all(alike);
    match others.as_slice() {
        [] => None,
        _ if all && again.is_empty() => Some(Difference::First(rivals[0])),
        _ => Some(Difference::Rivals(others)),
    }
}

/// Work of the baseline and of the comparable rivals.
struct Compared {
    first: Work,
    names: Vec<String>,
    rivals: Vec<Work>,
}

impl Contest {
    /// Compares the work of all entrants. A race that accepts different work gets a remark on a
    /// difference. For any other race, a difference makes the baseline run again; if a difference
    /// remains, the end of the race is returned. Does nothing if the race has timed runs, because
    /// the work was compared before them.
    pub(super) fn check_work(&mut self) -> Result<Option<Ended>, Failure> {
        if !self.race.runs().is_empty() {
            return Ok(None);
        }
        let Some(compared) = self.work() else {
            return Ok(None);
        };
        let Some(found) = difference(compared.first, &compared.rivals, &[]) else {
            return Ok(None);
        };
        if is_only_told(self.race.plan()) {
            let told = told(self.race.plan(), &compared, &found);
            self.remark(told)?;
            return Ok(None);
        }
        let again = self.baseline_again()?;
        let found = difference(compared.first, &compared.rivals, &again);
        Ok(found.map(|found| Ended::DifferentWork(refusal(self.race.plan(), &compared, &found))))
    }

    /// Collects the work that the proofs counted. Skips a rival that did not serve the same
    /// programs as the baseline. Also skips a rival whose proof is from another cell than the
    /// baseline's proof, because it counted another command.
    fn work(&self) -> Option<Compared> {
        let plan = self.race.plan();
        let baseline = self.race.proofs()[plan.baseline()].as_ref()?;
        let unserved = |proof: &Proof| {
            let parts = proof.unserved.iter();
            let mut parts: Vec<_> = parts
                .map(|part| (part.program.clone(), part.reason))
                .collect();
            parts.sort();
            parts
        };
        let mut compared = Compared {
            first: Work::of(baseline),
            names: Vec::new(),
            rivals: Vec::new(),
        };
        for (place, entrant) in plan.entrants.iter().enumerate() {
            let proof = self.race.proofs()[place].as_ref();
            let proof = proof.filter(|_| entrant.role == Role::Rival && self.race.counts(place));
            if let Some(proof) = proof
                && unserved(proof) == unserved(baseline)
                && proof.taken_in == baseline.taken_in
            {
                compared.names.push(entrant.name.clone());
                compared.rivals.push(Work::of(proof));
            }
        }
        Some(compared)
    }

    /// Runs the baseline again after all others, and returns the work of each run that succeeds.
    fn baseline_again(&mut self) -> Result<Vec<Work>, Failure> {
        let baseline = self.race.plan().baseline();
        let mut again = Vec::new();
        for _ in 0..REPEATS {
            self.progress.untimed(Aim::Work, baseline);
            let proof = self.prover.count(&mut self.race, baseline)?;
            again.extend(proof.as_ref().map(Work::of));
        }
        Ok(again)
    }
}

/// Returns whether different work leads only to a remark. The load of a server, or a command that
/// reports a figure, may run for a fixed time, in which faster entrants do more work.
fn is_only_told(plan: &Plan) -> bool {
    let options = &plan.options;
    options.allow_different_work || options.server.is_some() || !options.metrics.is_empty()
}

/// Formats a remark on the difference.
fn told(plan: &Plan, compared: &Compared, found: &Difference) -> String {
    let baseline = &plan.entrants[plan.baseline()].name;
    let first = compared.first.words();
    let others = match found {
        Difference::First(later) => format!("{} in every later run", later.words()),
        Difference::Rivals(places) => rivals(compared, places),
    };
    format!(
        "the untimed runs that prove which allocator serves did different amounts of work ({first} under {baseline}; \
         {others}): wall times compare that work, too"
    )
}

/// Formats the reason for the end of the race, with a remedy.
fn refusal(plan: &Plan, compared: &Compared, found: &Difference) -> String {
    let baseline = &plan.entrants[plan.baseline()].name;
    let (first, undo) = (compared.first.words(), undo(plan));
    match found {
        Difference::First(later) => format!(
            "the first run did different work: {first} under {baseline}, {} in later runs; \
             these probably found their work done, as in a build: {undo}, or race it as it is with \
             --allow-different-work",
            later.words()
        ),
        Difference::Rivals(places) => format!(
            "the entrants do different work: {first} under {baseline}, {}; if a run changes the work of \
             the next one, {undo}; if the command runs for a fixed time, read its output \
             with --metric; or race it as it is with --allow-different-work",
            rivals(compared, places)
        ),
    }
}

fn rivals(compared: &Compared, places: &[usize]) -> String {
    let one = |place: &usize| {
        let (work, name) = (compared.rivals[*place].words(), &compared.names[*place]);
        format!("{work} under {name}")
    };
    places.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Describes how to give each run the same initial state.
fn undo(plan: &Plan) -> String {
    if plan.options.prepare.is_some() {
        return "make --prepare undo all effects of a run".to_owned();
    }
    let program = plan.command.first().map(std::path::Path::new);
    let name = program.and_then(|path| path.file_name()?.to_str());
    let words = plan.command.iter().map(String::as_str);
    let clean = match name {
        // The tool `clean` of ninja works even if the build file has no target of that name.
        Some("ninja") => shlex::try_join(words.chain(["-t", "clean"])).ok(),
        Some("make" | "gmake") => shlex::try_join(words.chain(["clean"])).ok(),
        Some("cargo") => Some("cargo clean".to_owned()),
        _ => None,
    };
    let quoted = clean.as_deref().map(shlex::try_quote);
    match quoted.and_then(Result::ok) {
        Some(clean) => format!("undo it before each run with --prepare {clean}"),
        None => {
            let example = "--prepare 'ninja -C build clean'";
            format!("undo the effects of a run before each run, such as with {example} for a build")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns work of `calls` calls, each of which requests 64 bytes.
    fn work(calls: u64, processes: u64) -> Work {
        Work {
            calls,
            bytes: 64 * calls,
            processes,
        }
    }

    #[test]
    fn as_many_calls_for_more_bytes_are_other_work() {
        let first = work(100_000, 20);
        let more = |bytes| Work { bytes, ..first };
        let (few, many) = (more(first.bytes + (1 << 20)), more(3 * first.bytes));
        assert_eq!(difference(first, &[few], &[]), None);
        let other = Some(Difference::Rivals(vec![0]));
        assert_eq!(difference(first, &[many], &[]), other);
        // Proofs of an older heapdrome contain no bytes.
        assert_eq!(difference(first, &[more(0)], &[]), None);
    }

    #[test]
    fn what_an_allocator_loads_into_each_process_is_no_difference() {
        let shell = |calls, bytes| Work {
            calls,
            bytes,
            processes: 79,
        };
        let first = shell(84_873, 10_307_502);
        let with_a_runtime = shell(84_912, 13_107_200);
        assert_eq!(difference(first, &[with_a_runtime], &[]), None);
        let more = shell(84_912, first.bytes + 79 * (129 << 10));
        assert!(difference(first, &[more], &[]).is_some());
    }

    #[test]
    fn few_calls_and_small_shares_are_no_difference() {
        let first = work(100_000, 20);
        assert_eq!(difference(first, &[work(104_000, 20)], &[]), None);
        assert_eq!(difference(work(300, 1), &[work(900, 2)], &[]), None);
        let other = Some(Difference::Rivals(vec![0]));
        assert_eq!(difference(first, &[work(106_000, 20)], &[]), other);
        assert_eq!(difference(first, &[work(100_000, 24)], &[]), other);
    }

    #[test]
    fn a_first_run_that_differs_from_all_later_ones_is_told_from_a_rival_that_does() {
        let (first, later) = (work(67_907, 9), work(441, 1));
        let found = Some(Difference::First(later));
        assert_eq!(difference(first, &[later], &[later, later]), found);
        assert_eq!(difference(first, &[later, later], &[]), found);
        let rival = Some(Difference::Rivals(vec![0]));
        assert_eq!(difference(first, &[later], &[first, first]), rival);
        assert_eq!(difference(first, &[later, first], &[]), rival);
    }

    #[test]
    fn what_varies_by_itself_is_no_difference() {
        let again = [work(110_000, 9), work(130_000, 9)];
        let first = work(100_000, 9);
        assert_eq!(difference(first, &[work(125_000, 9)], &again), None);
        let far = difference(first, &[work(300_000, 9)], &again);
        assert_eq!(far, Some(Difference::Rivals(vec![0])));
    }
}
