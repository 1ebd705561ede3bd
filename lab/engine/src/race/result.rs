//! Conversion of a race's data to the result that is shown and saved.

use std::collections::{BTreeMap, BTreeSet};

use heapdrome_schema::{
    Bytes, Claim, Comparison, Entrant, EntrantResult, MemoryRun, Output, Plan, Proof, ProofSummary,
    RaceResult, Role, Run, SCHEMA, Series, Status,
};
use heapdrome_statistics::{drift, median, outliers};

use super::faults;
use super::figures::{Compared, FIGURES, WALL, probability};
use super::judge::noise_floor;
use super::material::Material;
use super::rules::{Rules, comparison};

/// Assembles the result so far.
pub fn assemble(material: &Material<'_>, rules: &Rules) -> RaceResult {
    let plan = material.plan;
    // In a race with proofs, an entrant that has neither a proof nor a failure was never run, and
    // has no row. Without proofs, every entrant has a row.
    let tried = |e: &usize| {
        plan.options.unproven
            || material.proofs.contains_key(e)
            || material.failures.contains_key(e)
    };
    let places = (0..plan.entrants.len()).filter(tried);
    let entrants: Vec<_> = places.map(|e| row(material, rules, e)).collect();
    RaceResult {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: plan.started.clone(),
        command: plan.command.clone(),
        asked: plan.asked.clone(),
        options: plan.options.clone(),
        baseline: plan.entrants[plan.baseline()].name.clone(),
        seed: plan.seed,
        rounds: material.complete_rounds(),
        least_rounds: least_rounds(plan),
        ended: material.ended.to_owned(),
        alpha: plan.alpha,
        machine: material.machine.clone(),
        noise_floor: noise_floor(material, rules),
        remarks: remarks(material, &entrants),
        entrants,
    }
}

fn row(material: &Material<'_>, rules: &Rules, entrant: usize) -> EntrantResult {
    let described = &material.plan.entrants[entrant];
    let runs: Vec<_> = material.of_entrant(entrant).collect();
    let figure = |place: usize| series(&runs, |run| Some((FIGURES[place].of)(run)));
    let memory = material.memory.iter();
    let memory: Vec<_> = memory.filter(|run| run.entrant == entrant).collect();
    let first = memory.first();
    let replay = material.plan.options.replay.as_ref();
    let over_time = replay.is_none_or(|replay| replay.speed.supports(Claim::OverTime));
    EntrantResult {
        allocator: described.name.clone(),
        role: described.role,
        version: described.version.clone(),
        library: described.library.clone(),
        sha256: described.sha256.clone(),
        settings: described.settings.clone(),
        hardened: described.hardened,
        known_faults: faults::concerning(described, material.proofs.get(&entrant)),
        status: material.status(entrant),
        decided_after: material.decided.get(&entrant).copied(),
        failure: material.failures.get(&entrant).cloned(),
        proof: material.proofs.get(&entrant).map(summary),
        output: compared_output(material, entrant),
        wall_s: figure(0),
        user_s: figure(1),
        system_s: figure(2),
        peak_rss_bytes: figure(3).map(|rss| Series {
            method: Some(PEAK_METHOD.into()),
            ..rss
        }),
        peak_tree_bytes: tree_series(&memory, |run| Some(run.peak_tree)),
        average_tree_bytes: tree_series(&memory, |run| run.average.filter(|_| over_time)),
        minor_faults: figure(4),
        major_faults: figure(5),
        voluntary_switches: figure(6),
        involuntary_switches: figure(7),
        counters: named_series(&runs, counters),
        metrics: named_series(&runs, |run| run.metrics.clone()),
        memory_timeline: first
            .filter(|_| over_time)
            .map(|run| run.timeline.clone())
            .unwrap_or_default(),
        memory_parts: first.map(|run| run.parts.clone()).unwrap_or_default(),
        memory_parts_method: first.and_then(|run| run.parts_method.clone()),
        image: first.and_then(|run| run.image),
        after_idle: first.and_then(|run| run.after_idle.filter(|_| over_time)),
        evidence: material.evidence.get(entrant).cloned().flatten(),
        detached: detached(&runs),
        versus_baseline: comparisons(material, rules, entrant),
    }
}

fn counters(run: &Run) -> BTreeMap<String, f64> {
    let named = run.counters.iter();
    named
        .map(|(name, count)| (name.clone(), *count as f64))
        .collect()
}

const PEAK_METHOD: &str =
    "wait4 ru_maxrss: the largest process among the child and its waited-for descendants";

/// Returns the programs that outlived the command in any run, without duplicates.
fn detached(runs: &[&Run]) -> Vec<String> {
    let names: BTreeSet<_> = runs
        .iter()
        .flat_map(|run| run.detached.iter().cloned())
        .collect();
    names.into_iter().collect()
}

fn summary(proof: &Proof) -> ProofSummary {
    ProofSummary {
        served_by: proof.served_by.clone(),
        calls: proof.calls,
        requested_bytes: proof.requested_bytes,
        processes: proof.processes,
        served_processes: proof.served_processes,
        unserved: proof.unserved.clone(),
        warnings: proof.warnings.clone(),
        taken_in: proof.taken_in.clone(),
    }
}

/// Returns the values of a figure in all runs that have it; `None` if no run has it.
fn series(runs: &[&Run], of: impl Fn(&Run) -> Option<f64>) -> Option<Series> {
    let samples: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
    let median = median(&samples)?;
    Some(Series {
        median,
        outliers: outliers(&samples),
        samples,
        method: None,
    })
}

/// Returns the series of every named figure, such as a counter or a metric.
fn named_series(
    runs: &[&Run],
    of: impl Fn(&Run) -> BTreeMap<String, f64>,
) -> BTreeMap<String, Series> {
    let figures: Vec<_> = runs.iter().map(|run| of(run)).collect();
    let names: BTreeSet<&String> = figures.iter().flat_map(BTreeMap::keys).collect();
    let one = |name: &String| {
        // A run without the figure keeps its position, so that samples correspond to rounds.
        let of_run = |run: &BTreeMap<String, f64>| run.get(name).copied().unwrap_or(f64::NAN);
        let samples: Vec<f64> = figures.iter().map(of_run).collect();
        let median = median(&samples)?;
        let outliers = outliers(&samples);
        Some((
            name.clone(),
            Series {
                median,
                samples,
                outliers,
                method: None,
            },
        ))
    };
    names.into_iter().filter_map(one).collect()
}

/// Returns the series of a figure over the runs that measured memory; `None` if no run has the
/// figure.
fn tree_series(memory: &[&MemoryRun], of: impl Fn(&MemoryRun) -> Option<Bytes>) -> Option<Series> {
    // A run shorter than the time between two readings has no reading. Its figure is 0 and does
    // not count.
    let figures = memory.iter().filter_map(|run| of(run)).map(Bytes::as_f64);
    let samples: Vec<f64> = figures.filter(|figure| *figure > 0.0).collect();
    let first = memory.first()?;
    Some(Series {
        median: median(&samples)?,
        outliers: outliers(&samples),
        samples,
        method: Some(format!("{}; {}", first.method, first.error)),
    })
}

/// Returns an entrant's ratios to the baseline, by figure.
fn comparisons(
    material: &Material<'_>,
    rules: &Rules,
    entrant: usize,
) -> BTreeMap<String, Comparison> {
    let described: &Entrant = &material.plan.entrants[entrant];
    if described.role == Role::Baseline || material.status(entrant) != Status::Ok {
        return BTreeMap::new();
    }
    let compare = |figure: &Compared<'_>| {
        let estimate = material.estimate(rules, entrant, figure)?;
        let rule = rules.of(figure.name());
        let replay = material.plan.options.replay.as_ref();
        let found = comparison(rule, figure, &estimate, replay);
        Some((figure.name().to_owned(), found))
    };
    let figures = Compared::all(&material.plan.options);
    figures.iter().filter_map(compare).collect()
}

/// Compares an entrant's standard output with the baseline's, if all runs of the baseline and its
/// twin printed the same output.
fn compared_output(material: &Material<'_>, entrant: usize) -> Output {
    if !material.plan.options.compare_output || material.of_entrant(entrant).next().is_none() {
        return Output::NotCompared;
    }
    let own = |run: &&Run| {
        let role = material.plan.entrants[run.entrant].role;
        role == Role::Baseline || role == Role::Twin
    };
    let expected: BTreeSet<_> = material
        .runs
        .iter()
        .filter(own)
        .map(|run| &run.output)
        .collect();
    let seen: BTreeSet<_> = material
        .of_entrant(entrant)
        .map(|run| &run.output)
        .collect();
    match expected.len() {
        0 => Output::NotCompared,
        1 if seen == expected => Output::Same,
        1 => Output::Different,
        _ => Output::Varies,
    }
}

/// Returns the positions in the plan of the rivals whose output differs from the baseline's.
pub fn differing(material: &Material<'_>) -> Vec<usize> {
    let is_rival = |e: &usize| material.plan.entrants[*e].role == Role::Rival;
    let rivals = (0..material.plan.entrants.len()).filter(is_rival);
    rivals
        .filter(|e| compared_output(material, *e) == Output::Different)
        .collect()
}

/// P-value below which a trend in the baseline's wall time is reported.
const DRIFT_LEVEL: f64 = 0.01;

/// Returns remarks for the reader on the whole race.
fn remarks(material: &Material<'_>, entrants: &[EntrantResult]) -> Vec<String> {
    let mut remarks = [&material.plan.notes, material.remarks].concat();
    let baseline: Vec<f64> = material
        .of_entrant(material.plan.baseline())
        .map(WALL.of)
        .collect();
    if let Some(trend) = drift(&baseline).filter(|trend| trend.p_value < DRIFT_LEVEL) {
        remarks.push(format!(
            "the baseline drifted by {:+.2}% per round ({}); the order of each round is \
             shuffled, so the ratios are not biased by it",
            100.0 * trend.slope_per_round,
            probability(trend.p_value)
        ));
    }
    let different: Vec<_> = differing(material)
        .into_iter()
        .map(|e| material.plan.entrants[e].name.as_str())
        .collect();
    if !different.is_empty() && !material.plan.options.same_output_required {
        remarks.push(format!(
            "the output differs from the baseline's under {}",
            different.join(", ")
        ));
    }
    remarks.extend(heapdrome_report::relevance::remarks(entrants));
    remarks.extend(decided_remark(material.plan, material.decided));
    remarks
}

/// Returns the minimum number of rounds before an entrant or the race may stop because it is
/// decided; `None` if decisions stop neither.
fn least_rounds(plan: &Plan) -> Option<u32> {
    let stopping = &plan.stopping;
    let decides = stopping.until_decided || stopping.margin.is_some();
    decides.then_some(stopping.min_rounds)
}

/// Returns a remark on entrants that were decided before the end. `decided` maps their positions in
/// the plan to their numbers of rounds. Returns `None` if `decided` is empty.
fn decided_remark(plan: &Plan, decided: &BTreeMap<usize, u32>) -> Option<String> {
    let mut by_rounds: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (entrant, rounds) in decided {
        let name = &plan.entrants[*entrant].name;
        by_rounds.entry(*rounds).or_default().push(name);
    }
    let told = by_rounds
        .iter()
        .map(|(rounds, names)| format!("{} after {rounds} rounds", names.join(", ")));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "decided early, so not raced to the end: {}",
            told.join("; ")
        )
    })
}
