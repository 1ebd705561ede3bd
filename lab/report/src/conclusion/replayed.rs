//! Limits of the conclusions from a replay of a trace. The replay's speed supports only some
//! claims, and a check may have shown that the replay differs from its program.

use heapdrome_schema::{Agreement, Claim, Fidelity, Replayed};

use super::rivals::{Figure, Rival};
use super::{Advice, Conclusion};
use crate::sheet::Sheet;
use crate::words::listed;

/// Returns the conclusion of a race whose replay supports no claim; `None` for every other race.
pub(super) fn without_claims<'a>(sheet: &Sheet<'a>) -> Option<Conclusion<'a>> {
    let replay = sheet.result.options.replay.as_ref()?;
    let claims = [Claim::Throughput, Claim::Peak, Claim::OverTime];
    let supports_none = claims.iter().all(|claim| !replay.speed.supports(*claim));
    supports_none.then(|| Conclusion {
        advice: Advice::NoAnswer,
        what: format!("No answer: keep {}.", sheet.baseline()),
        why: format!("A replay at speed {} supports no claim.", replay.speed),
        sure: "Race it with --speed dependencies for time, or --speed paced for memory.".to_owned(),
    })
}

/// Returns whether the race replays a trace at a speed that supports no claim on time.
pub(super) fn is_without_time(sheet: &Sheet<'_>) -> bool {
    let replay = sheet.result.options.replay.as_ref();
    replay.is_some_and(|replay| !replay.speed.supports(Claim::Throughput))
}

/// Returns the conclusion that keeps the baseline, based on memory alone.
pub(super) fn stay<'a>(sheet: &Sheet<'a>, rivals: &[Rival<'a>]) -> Conclusion<'a> {
    let baseline = sheet.baseline();
    let told = rivals.iter().map(|rival| {
        let verdict = rival.figures_of(sheet, &[Figure::Memory]);
        format!("{}: {verdict}", rival.name())
    });
    let told: Vec<_> = told.collect();
    Conclusion {
        advice: Advice::Stay,
        what: format!("Stay with {baseline}: no gain in memory that matters was shown."),
        why: format!("Against {baseline}: {}.", told.join("; ")),
        sure: String::new(),
    }
}

/// Adds the limits of a replay to the confidence of a conclusion.
pub(super) fn qualified<'a>(mut conclusion: Conclusion<'a>, sheet: &Sheet<'a>) -> Conclusion<'a> {
    if let Some(replay) = &sheet.result.options.replay {
        let parts = [conclusion.sure, refusal(replay), fidelity(replay)];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        conclusion.sure = parts.join(" ");
    }
    conclusion
}

/// Returns a sentence on the claim that the replay's speed does not support: on time, or on memory
/// over time. Empty if the speed supports neither, because the conclusion already states this.
fn refusal(replay: &Replayed) -> String {
    let claims = [Claim::Throughput, Claim::OverTime];
    let refused = claims
        .iter()
        .filter(|claim| !replay.speed.supports(**claim));
    let refused: Vec<_> = refused.collect();
    match refused.as_slice() {
        [one] => format!(
            "A replay at speed {} supports no claim on {}.",
            replay.speed,
            one.spoken()
        ),
        _ => String::new(),
    }
}

/// Returns a sentence on the fidelity of the replay.
fn fidelity(replay: &Replayed) -> String {
    let Some(fidelity) = &replay.fidelity else {
        return "The fidelity of the replay was not checked: run heapdrome trace check.".to_owned();
    };
    let misses: Vec<_> = fidelity
        .misses()
        .map(|miss| {
            format!(
                "{} ({}; limit {})",
                miss.property.name(),
                miss.found,
                miss.limit
            )
        })
        .collect();
    match misses.as_slice() {
        [] => format!("The replay is faithful in {}.", faithful(fidelity)),
        misses => format!("The replay misses its program in {}.", listed(misses)),
    }
}

/// Lists the properties in which a replay is within its limits.
fn faithful(fidelity: &Fidelity) -> String {
    let within = fidelity.checks.iter();
    let within = within.filter(|one| one.agreement == Agreement::Within);
    let names: Vec<_> = within.map(|one| one.property.name().to_owned()).collect();
    match names.is_empty() {
        true => "nothing that could be compared".to_owned(),
        false => listed(&names),
    }
}
