//! The tables of a check.

use heapdrome_schema::{Agreement, Bytes, EntrantResult, Fidelity, Table, grouped};
use heapdrome_statistics::median;

use super::facts::{Entrant, Facts, faults, heap};

/// Text of a cell without a value.
const NONE: &str = "-";

/// Returns the table of the comparisons, and the table of the entrants.
pub(super) fn tables(fidelity: &Fidelity, facts: &Facts<'_>) -> Vec<Table> {
    vec![comparisons(fidelity), entrants(facts)]
}

fn comparisons(fidelity: &Fidelity) -> Table {
    let heads = ["property", "outcome", "found", "limit", "program", "replay"];
    let rows = fidelity.checks.iter().map(|one| {
        let outcome = match one.agreement {
            Agreement::Within => "pass",
            Agreement::Miss => "miss",
            Agreement::NothingToCompare => "nothing to compare",
            Agreement::NotDecided => "not decided",
        };
        let cells = [
            one.property.name(),
            outcome,
            &one.found,
            &one.limit,
            &one.program,
            &one.replay,
        ];
        cells.map(str::to_owned).to_vec()
    });
    Table {
        title: "Replay against program".to_owned(),
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: NOTES.map(str::to_owned).to_vec(),
        ..Table::default()
    }
}

const NOTES: [&str; 3] = [
    "peak memory and page faults: the paced replay, under the recorded allocator. The memory of \
     binary, libraries and stack and the replay's own tables are subtracted. Memory that the program \
     maps without malloc counts.",
    "order by memory: the rank correlation of the entrants' peaks, paced. Entrants without a shown \
     difference of 2% share a rank.",
    "wall and processor time: pairs of entrants that the program shows to differ by 2% or more, \
     against the replay at speed dependencies. A pair of which the replay's interval contains 1 is not \
     decided.",
];

/// Returns the table of each entrant's memory, page faults and processor time.
fn entrants(facts: &Facts<'_>) -> Table {
    let heads = [
        "allocator",
        "peak",
        "replayed",
        "faults",
        "replayed",
        "cpu",
        "replayed",
    ];
    let memory = |row: &EntrantResult| {
        heap(row)
            .and_then(|all| median(&all))
            .map(|it| Bytes(it.max(0.0) as u64).to_string())
    };
    let count = |row: &EntrantResult| faults(row).map(|it| grouped(it.max(0.0).round() as u64));
    let time = |samples: Option<Vec<f64>>| {
        samples
            .and_then(|all| median(&all))
            .map(|it| format!("{it:.4} s"))
    };
    let rows = facts.entrants.iter().map(|one| {
        let cells = [
            Some(one.name.to_owned()),
            memory(one.program),
            memory(one.paced),
            count(one.program),
            count(one.paced),
            time(one.program.samples("cpu_s")),
            time(one.dependencies.samples("measured_cpu_s")),
        ];
        cells
            .map(|cell| cell.unwrap_or_else(|| NONE.to_owned()))
            .to_vec()
    });
    Table {
        title: "Entrants, program and replay".to_owned(),
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: facts.recorded().map(scope).into_iter().collect(),
        ..Table::default()
    }
}

/// Returns a note on the allocators whose figures the check compares.
fn scope(recorded: &Entrant<'_>) -> String {
    format!(
        "compared: peak and page faults of {} alone, the allocator of the recording; for all entrants \
         together, the order by peak and the ratios of their times",
        recorded.name
    )
}
