//! Races of a workload: a single race, and a sweep over numbers of threads.

use heapdrome_schema::{Collection, Comparison, Member, RaceResult, Role, SCHEMA, Status, Verdict};

use crate::races::{compared, series, usual};

/// The figures of every entrant, with the baseline's values.
const FIGURES: [(&str, f64); 5] = [
    ("operations_per_cpu_s", 12.3e6),
    ("overhead", 1.125),
    ("peak_requested_bytes", 3.0 * 1_048_576.0),
    ("measured_wall_s", 0.0712),
    ("latency_malloc_p99_ns", 1250.0),
];

/// Returns a race of a workload, with one figure that no run has.
pub fn race() -> RaceResult {
    let mut result = usual();
    result.options.workload = Some("rptest threads=2 loops=20".to_owned());
    let absent = ["latency_free_p99_ns"];
    let names = FIGURES.iter().map(|(name, _)| *name).chain(absent);
    result.options.figures = names.map(str::to_owned).collect();
    result.options.same_output_required = true;
    for entrant in &mut result.entrants {
        if entrant.status != Status::Ok {
            continue;
        }
        let factor = entrant
            .wall_s
            .as_ref()
            .map_or(1.0, |wall| 75.0 / wall.median);
        for (name, value) in FIGURES {
            let series = series(value * factor).expect("a series");
            entrant.metrics.insert(name.to_owned(), series);
        }
        if entrant.role == Role::Rival {
            let (operations, overhead) = ratios(factor);
            let ratios = &mut entrant.versus_baseline;
            ratios.insert("operations_per_cpu_s".to_owned(), operations);
            ratios.insert("overhead".to_owned(), overhead);
        }
    }
    result
}

fn ratios(factor: f64) -> (Comparison, Comparison) {
    let verdict = match factor {
        more if more > 1.01 => Verdict::More,
        less if less < 0.99 => Verdict::Less,
        _ => Verdict::Undecided,
    };
    (
        compared(verdict, factor, 0.01),
        compared(verdict, factor, 0.02),
    )
}

/// Returns a sweep over three numbers of threads. The last exceeds the number of processors.
pub fn sweep() -> Collection {
    let member = |threads: u64| {
        let mut result = race();
        if let Some(proof) = &mut result.entrants[2].proof
            && threads > 1
        {
            proof.taken_in = Some("threads=1".to_owned());
        }
        Member {
            cell: format!("threads={threads}"),
            workload: "rptest".to_owned(),
            parameters: vec![format!("threads={threads}")],
            swept: Some(threads),
            processors: (0..2)
                .take(threads as usize)
                .filter(|_| threads < 3)
                .collect(),
            factor: None,
            result,
        }
    };
    let first = race();
    Collection {
        schema: SCHEMA,
        heapdrome: first.heapdrome,
        started: first.started,
        asked: ["race", "-w", "rptest", "-t", "1,2,8"]
            .map(str::to_owned)
            .to_vec(),
        name: "sweep threads".to_owned(),
        machine: first.machine,
        races: [1, 2, 8].map(member).to_vec(),
        remarks: vec!["not raced: 16 threads".to_owned()],
        ..Collection::default()
    }
}
