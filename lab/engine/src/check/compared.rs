//! The comparisons of a check, each with its limit.

use heapdrome_schema::{
    Agreement, Bytes, CPU, EntrantResult, FidelityCheck, Property, WALL, grouped,
};
use heapdrome_statistics::median;

use super::facts::{Entrant, Facts, faults, heap};
use super::order::{Orders, Samples, orders};
use super::sides::Sides;

/// Maximum relative difference between the peak memory of the replay and that of the program.
const MEMORY: f64 = 0.05;

/// Maximum relative difference between the number of page faults of the replay and that of the
/// program.
const FAULTS: f64 = 0.10;

/// Minimum rank correlation between the entrants' order by peak memory in the program and their
/// order in the replay.
const CORRELATION: f64 = 0.9;

const UNKNOWN: &str = "unknown";

/// Returns the comparisons of all properties, in the order of [`Property::ALL`].
pub(super) fn all(facts: &Facts<'_>) -> Vec<FidelityCheck> {
    let one = |property: Property| match property {
        Property::PeakMemory => peak(facts),
        Property::PageFaults => page_faults(facts),
        Property::MemoryOrder => memory_order(facts),
        Property::WallTime => times(facts, property, [WALL, "measured_wall_s"]),
        Property::ProcessorTime => times(facts, property, [CPU, "measured_cpu_s"]),
    };
    Property::ALL.map(one).into()
}

fn peak(facts: &Facts<'_>) -> FidelityCheck {
    let heap = |row: &EntrantResult| median(&heap(row)?);
    let tell = |bytes: f64| Bytes(bytes.max(0.0) as u64).to_string();
    deviation(facts, Property::PeakMemory, MEMORY, heap, tell)
}

fn page_faults(facts: &Facts<'_>) -> FidelityCheck {
    let tell = |count: f64| grouped(count.max(0.0).round() as u64);
    deviation(facts, Property::PageFaults, FAULTS, faults, tell)
}

/// Compares the amount that `of` extracts from the program's row with the amount from the paced
/// replay's row. Both rows are those of the allocator under which the trace was recorded.
fn deviation(
    facts: &Facts<'_>,
    property: Property,
    limit: f64,
    of: impl Fn(&EntrantResult) -> Option<f64>,
    tell: impl Fn(f64) -> String,
) -> FidelityCheck {
    let rows = facts.recorded().map(|one| [one.program, one.paced]);
    let amounts = rows.map_or([None, None], |rows| rows.map(of));
    let known = |amount: Option<f64>| amount.map_or_else(|| UNKNOWN.to_owned(), &tell);
    let (agreement, found) = match amounts {
        [Some(program), Some(replay)] if program > 0.0 => {
            let off = replay / program - 1.0;
            (within(off.abs() <= limit), format!("{:+.1}%", 100.0 * off))
        }
        _ => (Agreement::Miss, "not measured".to_owned()),
    };
    FidelityCheck {
        property,
        agreement,
        program: known(amounts[0]),
        replay: known(amounts[1]),
        found,
        limit: format!("{:.0}%", 100.0 * limit),
    }
}

fn within(is_within: bool) -> Agreement {
    match is_within {
        true => Agreement::Within,
        false => Agreement::Miss,
    }
}

fn memory_order(facts: &Facts<'_>) -> FidelityCheck {
    let order = |row: fn(&Entrant<'_>) -> Option<Vec<f64>>| {
        Samples::new(facts.entrants.iter().map(row)).map(|samples| samples.order())
    };
    let program = order(|one| heap(one.program));
    let replay = order(|one| heap(one.paced)).zip(program.as_ref());
    let replay = replay.map(|(replay, program)| replay.beside(program, MEMORY).ranks());
    let program = program.map(|program| program.ranks());
    let known = |ranks: &Option<Vec<f64>>| match ranks {
        Some(ranks) => in_order(facts, ranks),
        None => UNKNOWN.to_owned(),
    };
    let (agreement, found) = match (&program, &replay) {
        (Some(program), Some(replay)) => match orders(program, replay) {
            Orders::NoOrder => (
                Agreement::NothingToCompare,
                "no difference that matters between entrants".to_owned(),
            ),
            Orders::NotReproduced => (Agreement::Miss, "no order in the replay".to_owned()),
            Orders::Correlation(found) => (within(found >= CORRELATION), format!("{found:.2}")),
        },
        _ => (Agreement::Miss, "not measured".to_owned()),
    };
    FidelityCheck {
        property: Property::MemoryOrder,
        agreement,
        program: known(&program),
        replay: known(&replay),
        found,
        limit: format!("at least {CORRELATION}"),
    }
}

/// Formats the entrants in ascending order of their ranks, such as `a < b = c`.
fn in_order(facts: &Facts<'_>, ranks: &[f64]) -> String {
    let mut named: Vec<_> = ranks.iter().copied().zip(facts.names()).collect();
    named.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut text = String::new();
    let mut before = None;
    for (rank, name) in named {
        match before {
            None => {}
            Some(before) if before == rank => text.push_str(" = "),
            Some(_) => text.push_str(" < "),
        }
        text.push_str(name);
        before = Some(rank);
    }
    text
}

/// Checks, for each pair of entrants that differ in the program, whether the pair's ratio lies on
/// the same side of 1 in the program and in the replay. `figures` names the figure of the program
/// and the figure of the replay.
fn times(facts: &Facts<'_>, property: Property, figures: [&str; 2]) -> FidelityCheck {
    let pairs = |samples: &dyn Fn(&Entrant<'_>) -> Option<Vec<f64>>| {
        let all = facts.entrants.iter().map(samples);
        Samples::new(all)
            .map(|samples| samples.pairs())
            .unwrap_or_default()
    };
    let program = pairs(&|one| one.program.samples(figures[0]));
    let replay = pairs(&|one| one.dependencies.samples(figures[1]));
    let names: Vec<&str> = facts.names().collect();
    Sides::of(&program, &replay, &names).check(property, program.len())
}
