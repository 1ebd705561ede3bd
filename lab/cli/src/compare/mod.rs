//! `heapdrome compare`: what changed from one result to another.

mod changes;
mod condition;
mod differences;
mod pairing;

use std::path::Path;

use heapdrome_record::{
    Changes, ComparedResult, Judged, Machine, Outcome, SCHEMA, Saved, changes_to_json, source_name,
};
use heapdrome_report::{changes_markdown, changes_text};

use crate::arguments::CompareArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, sources};

use changes::{ALPHA, Family};
use condition::Condition;
use pairing::Pairs;

/// Compares two results, and judges the conditions under which it fails.
///
/// # Errors
/// [`Failure::Usage`] when a file or a condition is wrong or the results cannot be compared;
/// [`Failure::Entrant`] when a condition is confirmed, after everything has been printed.
pub fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let output = arguments.output();
    Destinations::of(&output).check(&[&arguments.old, &arguments.new])?;
    sources::refuse_stdin_twice(&[&arguments.old, &arguments.new])?;
    let [old, new] = [&arguments.old, &arguments.new].map(|path| sources::read_measured(path));
    let (old, new) = (old?, new?);
    let same_machine = !arguments.machines_differ && is_same(machine(&old), machine(&new));
    let pairs = pairing::pairs(&old, &new, same_machine)?;
    let conditions = parsed(&arguments.fail_if, &pairs, same_machine)?;
    let compared = |path: &Path, saved: &Saved| described(path, saved);
    let family = Family::of(&pairs, same_machine);
    let mut changes = Changes {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        old: compared(&arguments.old, &old),
        new: compared(&arguments.new, &new),
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
    publish(&changes, arguments)?;
    outcome(&changes.conditions)
}

fn parsed(
    texts: &[String],
    pairs: &Pairs<'_>,
    same_machine: bool,
) -> Result<Vec<Condition>, Failure> {
    let one = |text: &String| Condition::parse(text)?.checked(pairs, same_machine);
    texts.iter().map(one).collect()
}

fn publish(changes: &Changes, arguments: &CompareArguments) -> Result<(), Failure> {
    let redaction = match arguments.redact {
        true => Some(Folders::find()?.redaction()),
        false => None,
    };
    let output = arguments.output();
    let text = changes_text(changes, output::terminal());
    let mut done = output::print_beside(&Destinations::of(&output), text.as_bytes());
    if let Some(path) = &output.json {
        let bytes = changes_to_json(changes).map_err(Failure::machine)?;
        done = done.and(output::write_one(path, bytes, &output, redaction.as_ref()));
    }
    if let Some(path) = &output.markdown {
        let bytes = changes_markdown(changes).into_bytes();
        done = done.and(output::write_one(path, bytes, &output, redaction.as_ref()));
    }
    done
}

/// The exit status: only what is confirmed fails.
fn outcome(conditions: &[Judged]) -> Result<(), Failure> {
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

/// Memory that is this much alike is the same memory: a kernel keeps more or less of it for itself.
const SAME_MEMORY: f64 = 0.02;

/// Whether two machines are described alike: the same processor, as many of them, as much memory.
/// What runs on them may differ, and is told.
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
