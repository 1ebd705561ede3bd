//! Adds the findings of a run without the counting library to a proof.

use std::collections::BTreeMap;

use heapdrome_schema::{Coverage, Entrant, Proof, Unserved, UnservedReason};

use crate::Report;

/// Adds to the proof of `entrant` the findings of `uncounted`, a run in exactly the environment of
/// the measured runs. They show an allocator that a start script preloads only if `LD_PRELOAD` is
/// unset. In a counted run, the script does not preload it, because `LD_PRELOAD` is always set.
pub fn add_uncounted(proof: &mut Proof, entrant: &Entrant, uncounted: &Report) {
    match entrant.as_is {
        true => proof.served_by = busiest_server(uncounted).or(proof.served_by.take()),
        false => add_displaced(proof, uncounted),
    }
}

/// Sums the programs' processor time by the object that served them, and returns the object with
/// the largest sum. Returns `None` if no program was served.
fn busiest_server(report: &Report) -> Option<String> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for image in &report.images {
        if let Some(server) = &image.served_by {
            *times.entry(server).or_default() += image.cpu.0;
        }
    }
    let busiest = times.into_iter().max_by_key(|(_, time)| *time);
    busiest.map(|(server, _)| server.to_owned())
}

/// Adds the unserved programs of `uncounted` that `proof` lacks and that an object other than the
/// entrant's served. Lowers the coverage accordingly.
fn add_displaced(proof: &mut Proof, uncounted: &Report) {
    let known = |part: &&Unserved| {
        let is_it = |known: &Unserved| known.program == part.program;
        !proof.unserved.iter().any(is_it) && was_chosen(part)
    };
    let found: Vec<Unserved> = uncounted
        .proof
        .unserved
        .iter()
        .filter(known)
        .cloned()
        .collect();
    let Some(first) = found.first().and_then(|part| part.served_by.clone()) else {
        return;
    };
    proof
        .unserved
        .extend(found.into_iter().map(|part| Unserved {
            reason: UnservedReason::BundledAllocator,
            advice: advice(part.served_by.as_deref()),
            ..part
        }));
    proof
        .unserved
        .sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share));
    let share: f64 = proof.unserved.iter().map(|part| part.cpu_share).sum();
    if 1.0 - share < Proof::ENOUGH {
        proof.coverage = Coverage::TooLittle;
        proof.served_by = Some(first);
    } else if proof.coverage == Coverage::Whole {
        proof.coverage = Coverage::Most;
    }
}

/// Returns whether the program's calls were observed to reach another object. A program that cannot
/// load a library, or ended before its memory could be read, shows nothing about the environment.
fn was_chosen(part: &Unserved) -> bool {
    let loads = !matches!(
        part.reason,
        UnservedReason::StaticBinary | UnservedReason::OtherMachine | UnservedReason::RaisedRights
    );
    loads && part.served_by.is_some()
}

fn advice(served_by: Option<&str>) -> String {
    let other = served_by.unwrap_or("another object");
    format!(
        "the command itself chooses {other} if LD_PRELOAD is not set, as in measured runs: change \
         its start script"
    )
}
