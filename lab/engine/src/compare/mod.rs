//! Changes from one result to another.

mod changes;
mod condition;
mod differences;
mod pairs;

use std::path::Path;

use heapdrome_schema::{
    Changes, ComparedResult, Judged, Machine, Outcome, SCHEMA, Saved, source_name,
};

use crate::failure::Failure;

use changes::{ALPHA, Family};
use condition::Condition;
use pairs::Pairs;

/// Compares two results and judges the conditions under which the comparison fails.
/// `machines_differ` treats the machines as different even if their descriptions are equal.
///
/// # Errors
/// When a condition is invalid, or the results cannot be compared.
pub fn compare(
    (old_path, old): (&Path, &Saved),
    (new_path, new): (&Path, &Saved),
    conditions: &[String],
    machines_differ: bool,
) -> Result<Changes, Failure> {
    let same_machine = !machines_differ && is_same(machine(old), machine(new));
    let pairs = pairs::pairs(old, new, same_machine)?;
    let conditions = parsed(conditions, &pairs, same_machine)?;
    let family = Family::of(&pairs, same_machine);
    let mut changes = Changes {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        old: described(old_path, old),
        new: described(new_path, new),
        same_machine,
        rests_on: Vec::new(),
        alpha: ALPHA,
        pairs: pairs
            .pairs
            .iter()
            .map(|pair| family.compare(pair))
            .collect(),
        conditions: Vec::new(),
        unmatched: pairs.unmatched.clone(),
    };
    changes.rests_on = differences::rests_on(&changes, &pairs);
    changes.conditions = conditions
        .iter()
        .map(|condition| condition.judge(&changes, &pairs))
        .collect();
    Ok(changes)
}

fn parsed(
    texts: &[String],
    pairs: &Pairs<'_>,
    same_machine: bool,
) -> Result<Vec<Condition>, Failure> {
    let one = |text: &String| Condition::parse(text)?.checked(pairs, same_machine);
    texts.iter().map(one).collect()
}

/// Returns heapdrome's outcome for a comparison: a failure only if a condition is confirmed.
///
/// # Errors
/// When a condition is confirmed.
pub fn outcome(conditions: &[Judged]) -> Result<(), Failure> {
    let confirmed: Vec<_> = conditions
        .iter()
        .filter(|judged| judged.outcome == Outcome::Confirmed)
        .map(|judged| judged.condition.as_str())
        .collect();
    match confirmed.as_slice() {
        [] => Ok(()),
        conditions => Err(Failure::Entrant(format!(
            "confirmed: {}",
            conditions.join("; ")
        ))),
    }
}

fn machine(saved: &Saved) -> &Machine {
    match saved {
        Saved::Race(result) => &result.machine,
        Saved::Collection(races) => &races.machine,
    }
}

/// Maximum relative difference in memory between machines that count as equal. It is not 0, because
/// kernels reserve different amounts for themselves.
const SAME_MEMORY: f64 = 0.02;

/// Returns whether two machines have the same processor, the same number of processors, and nearly
/// the same memory. Differences in software are reported, but do not count here.
fn is_same(old: &Machine, new: &Machine) -> bool {
    let [old_bytes, new_bytes] = [old, new].map(|machine| machine.memory_bytes as f64);
    old.processor == new.processor
        && old.processors == new.processors
        && (old_bytes - new_bytes).abs() <= SAME_MEMORY * old_bytes.max(new_bytes)
}

fn described(path: &Path, saved: &Saved) -> ComparedResult {
    let (started, heapdrome) = match saved {
        Saved::Race(result) => (&result.started, &result.heapdrome),
        Saved::Collection(races) => (&races.started, &races.heapdrome),
    };
    ComparedResult {
        file: source_name(path).to_string_lossy().into_owned(),
        started: started.clone(),
        heapdrome: heapdrome.clone(),
        machine: machine(saved).clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_hardware() {
        let here = Machine {
            processor: "AMD EPYC".to_owned(),
            processors: 2,
            memory_bytes: 8_000_000_000,
            kernel: "6.1".to_owned(),
            ..Machine::default()
        };
        let booted = Machine {
            kernel: "6.6".to_owned(),
            memory_bytes: 7_990_000_000,
            ..here.clone()
        };
        assert!(is_same(&here, &booted));
        let larger = Machine {
            processors: 4,
            ..here.clone()
        };
        assert!(!is_same(&here, &larger));
    }
}
