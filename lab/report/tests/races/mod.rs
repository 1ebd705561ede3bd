//! Races to print: a typical race, an empty race, and parts for other races.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heapdrome_schema::{
    Comparison, Ending, EntrantResult, Finding, Machine, NoiseFloor, Options, Output, ProofSummary,
    RaceResult, Role, SCHEMA, Series, Status, Unserved, UnservedReason, Verdict,
};

/// Returns a series around `median`.
pub fn series(median: f64) -> Option<Series> {
    let samples = vec![median * 0.99, median, median * 1.01];
    Some(Series {
        median,
        samples,
        outliers: Vec::new(),
        method: None,
    })
}

/// Returns a comparison whose interval extends by `spread` in both directions.
pub fn compared(verdict: Verdict, ratio: f64, spread: f64) -> Comparison {
    let more = (verdict == Verdict::Undecided).then_some(14);
    Comparison {
        ratio,
        low: ratio - spread,
        high: ratio + spread,
        rounds: 3,
        verdict,
        rounds_to_show_one_percent: more,
        misses: Vec::new(),
    }
}

/// Returns an entrant with only a name and a role, and without figures.
pub fn bare(name: &str, role: Role) -> EntrantResult {
    EntrantResult {
        allocator: name.to_owned(),
        role,
        version: String::new(),
        library: None,
        sha256: None,
        settings: BTreeMap::new(),
        hardened: false,
        known_faults: Vec::new(),
        status: Status::Ok,
        decided_after: None,
        failure: None,
        proof: None,
        output: Output::Same,
        wall_s: None,
        user_s: None,
        system_s: None,
        peak_rss_bytes: None,
        peak_tree_bytes: None,
        minor_faults: None,
        major_faults: None,
        voluntary_switches: None,
        involuntary_switches: None,
        counters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        memory_timeline: Vec::new(),
        average_tree_bytes: None,
        memory_parts: Vec::new(),
        memory_parts_method: None,
        image: None,
        after_idle: None,
        evidence: None,
        detached: Vec::new(),
        versus_baseline: BTreeMap::new(),
    }
}

/// Returns an entrant with a proof, times, and two peaks of memory.
pub fn full(name: &str, role: Role, wall: f64, mib: f64) -> EntrantResult {
    let mut entrant = bare(name, role);
    entrant.version = "1.2.3".to_owned();
    entrant.library = Some(PathBuf::from(format!("$CACHE/lib{name}.so")));
    entrant.proof = Some(ProofSummary {
        served_by: Some(format!("$CACHE/lib{name}.so")),
        calls: 1_240_332,
        requested_bytes: 96 << 20,
        processes: 12,
        served_processes: 12,
        unserved: Vec::new(),
        warnings: Vec::new(),
        taken_in: None,
    });
    entrant.wall_s = series(wall);
    entrant.user_s = series(wall * 1.6);
    entrant.system_s = series(wall * 0.2);
    entrant.peak_rss_bytes = series(mib * 1_048_576.0);
    entrant.peak_tree_bytes = series(mib * 2.0 * 1_048_576.0);
    entrant
}

/// Returns a rival with a proof, times, two peaks of memory, and comparisons on wall time and peak
/// memory.
pub fn rival(name: &str, wall: Comparison, memory: Comparison) -> EntrantResult {
    let mut entrant = full(name, Role::Rival, 75.0 * wall.ratio, 250.0 * memory.ratio);
    entrant.versus_baseline = BTreeMap::from([
        ("wall_s".to_owned(), wall),
        ("peak_rss_bytes".to_owned(), memory),
    ]);
    entrant
}

/// Returns a race without entrants or rounds.
pub fn empty() -> RaceResult {
    RaceResult {
        schema: SCHEMA,
        heapdrome: "0.1.0".to_owned(),
        started: "2026-11-21T05:00:00Z".to_owned(),
        command: ["ninja", "-C", "build dir"].map(str::to_owned).to_vec(),
        asked: [
            "race",
            "-a",
            "default",
            "--prepare",
            "ninja -C 'build dir' clean",
            "--",
        ]
        .into_iter()
        .chain(["ninja", "-C", "build dir"])
        .map(str::to_owned)
        .collect(),
        options: Options {
            judged: vec!["wall_s".to_owned()],
            memory_runs: 1,
            compare_output: true,
            success: vec![0],
            ..Options::default()
        },
        baseline: "system".to_owned(),
        seed: 42,
        rounds: 0,
        least_rounds: None,
        ended: "interrupted".to_owned(),
        alpha: 0.05,
        machine: Machine::default(),
        noise_floor: None,
        remarks: Vec::new(),
        entrants: Vec::new(),
    }
}

/// Returns a race with a winner, a tie, a loser, a crash, a timeout, and a static program that was
/// not served.
pub fn usual() -> RaceResult {
    let mut result = empty();
    result.rounds = 3;
    result.ended = "all rounds done".to_owned();
    result.options.prepare = Some("ninja -C 'build dir' clean".to_owned());
    result.machine = Machine {
        processor: "AMD EPYC".to_owned(),
        processors: 2,
        memory_bytes: 24 << 30,
        kernel: "Linux 6.18.0".to_owned(),
        libc: "glibc 2.36".to_owned(),
        distribution: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        fault_s: None,
        remarks: vec!["swap: 1.00 GiB of 2.00 GiB used".to_owned()],
    };
    let baseline_again = compared(Verdict::Undecided, 1.002, 0.011);
    result.noise_floor = Some(NoiseFloor {
        baseline_again,
        smallest_difference: 0.013,
        smallest_by_figure: BTreeMap::from([("wall_s".to_owned(), 0.013)]),
    });
    result.remarks = vec!["Runs grew 0.4% slower over the race.".to_owned()];
    result.entrants = entrants();
    result
}

fn entrants() -> Vec<EntrantResult> {
    let mut slow = rival(
        "hardened_malloc",
        compared(Verdict::Slower, 1.25, 0.02),
        compared(Verdict::More, 2.5, 0.1),
    );
    slow.hardened = true;
    slow.wall_s.as_mut().expect("it has one").outliers = vec![2];
    let mut even = rival(
        "rpmalloc",
        compared(Verdict::Undecided, 0.998, 0.013),
        compared(Verdict::Undecided, 1.0, 0.02),
    );
    even.proof.as_mut().expect("it has one").unserved = vec![Unserved {
        program: "/usr/bin/ld".to_owned(),
        processes: 1,
        cpu_share: 0.04,
        reason: UnservedReason::StaticBinary,
        served_by: None,
        advice: "link it dynamically".to_owned(),
    }];
    let mut all = vec![
        full("system", Role::Baseline, 75.0, 250.0),
        full("system again", Role::Twin, 75.1, 250.0),
        slow,
        even,
        rival(
            "jemalloc",
            compared(Verdict::Faster, 0.935, 0.02),
            compared(Verdict::More, 1.3, 0.02),
        ),
        rival(
            "mimalloc3",
            compared(Verdict::Faster, 0.926, 0.017),
            compared(Verdict::Less, 0.88, 0.02),
        ),
    ];
    all.extend(failed());
    all
}

/// Returns an entrant that crashed, and one that ran out of time.
fn failed() -> [EntrantResult; 2] {
    let mut crashed = bare("broken", Role::Rival);
    crashed.status = Status::Failed;
    crashed.failure = Some(Finding {
        ending: Ending::Killed(11),
        during: "round 2".to_owned(),
        stderr_tail: "\u{1b}[31mfree(): invalid pointer\u{1b}[0m\nAborted | here\n".to_owned(),
    });
    let mut late = bare("hoard", Role::Rival);
    late.status = Status::Timeout;
    late.failure = Some(Finding {
        ending: Ending::TimedOut,
        during: "round 1".to_owned(),
        stderr_tail: String::new(),
    });
    [crashed, late]
}
