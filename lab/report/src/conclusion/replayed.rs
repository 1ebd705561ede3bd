//! Limits of the conclusions from a replay of a trace. The replay's speed supports only some
//! claims, and a check may have shown that the replay differs from its program.

use heapdrome_schema::{Agreement, CPU, Claim, Fidelity, RaceResult, Replayed, WALL};

use super::rivals::{Figure, Rival};
use super::{Advice, Conclusion};
use crate::entrant::versus;
use crate::sheet::Sheet;
use crate::words::{fraction, listed};

/// Text that a replay's workload contains if the trace is built in.
const BUILT_IN: &str = "trace=library:";

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

/// Adds the limits of a replay to the reason and to the confidence of a conclusion.
pub(super) fn qualified<'a>(mut conclusion: Conclusion<'a>, sheet: &Sheet<'a>) -> Conclusion<'a> {
    if let Some(replay) = &sheet.result.options.replay {
        let scope = scope(conclusion.advice, replay);
        conclusion.why = joined([conclusion.why, scope]);
        let fidelity = fidelity(sheet.result, replay);
        conclusion.sure = joined([conclusion.sure, refusal(replay), fidelity]);
    }
    conclusion
}

/// Joins the sentences that are not empty.
fn joined<const COUNT: usize>(sentences: [String; COUNT]) -> String {
    let sentences: Vec<_> = sentences
        .into_iter()
        .filter(|one| !one.is_empty())
        .collect();
    sentences.join(" ")
}

/// Returns sentences on how much smaller differences in time are in the program than in its replay.
/// Empty if the replay supports no claim on time, or the conclusion gives no answer.
fn scope(advice: Advice<'_>, replay: &Replayed) -> String {
    let has_times = replay.speed.supports(Claim::Throughput);
    if !has_times || matches!(advice, Advice::Unproven | Advice::NoAnswer) {
        return String::new();
    }
    let ratio = match advice {
        Advice::Take { entrant, .. } => versus(entrant, CPU).or_else(|| versus(entrant, WALL)),
        _ => None,
    };
    let saved = ratio.map(|compared| 1.0 - compared.ratio);
    let smaller = match (replay.allocator_share, saved) {
        (None, _) => ", because the program also does other work".to_owned(),
        (Some(share), saved) => {
            let saved = saved.filter(|saved| *saved > 0.0);
            let saved = saved.map(|saved| {
                let saved = fraction(share * saved);
                format!(
                    ", so it would save about {saved} of its processor time (a forecast without an interval: \
                     the race does not know the error of the share, which heapdrome profile shows)"
                )
            });
            format!(
                ": when it was recorded, the program spent about {} of its processor time in the allocator{}",
                fraction(share),
                saved.unwrap_or_default()
            )
        }
    };
    format!(
        "Times are those of the replay, which only calls the allocator and writes to the blocks. \
         The program's own times differ less{smaller}."
    )
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

/// Returns a sentence on the fidelity of the replay. A built-in trace cannot be checked, because it
/// contains only the beginning of a program's run.
fn fidelity(result: &RaceResult, replay: &Replayed) -> String {
    let Some(fidelity) = &replay.fidelity else {
        let workload = result.options.workload.as_deref();
        let is_built_in = workload.is_some_and(|words| words.contains(BUILT_IN));
        let remedy = match is_built_in {
            true => "",
            false => " (heapdrome trace check compares them)",
        };
        return format!("Whether the program behaves like its replay was not checked{remedy}.");
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
        [] => agreement(fidelity).unwrap_or_else(|| {
            "A check of the replay found nothing to compare with its program.".to_owned()
        }),
        misses => format!("The replay misses its program in {}.", listed(misses)),
    }
}

/// Returns a sentence on the properties in which a replay is within its limits, with the allocators
/// that were compared; `None` if there are no such properties.
pub(crate) fn agreement(fidelity: &Fidelity) -> Option<String> {
    let within = |is_of_recorded: bool| {
        let checks = fidelity.checks.iter();
        let within = checks.filter(|one| {
            one.agreement == Agreement::Within && one.property.is_of_recorded() == is_of_recorded
        });
        let names: Vec<_> = within.map(|one| one.property.name().to_owned()).collect();
        (!names.is_empty()).then(|| listed(&names))
    };
    let recorded =
        within(true).map(|names| format!("in {names} under the allocator of the recording"));
    let across =
        within(false).map(|names| format!("in {names} across {}", listed(&fidelity.entrants)));
    let parts: Vec<_> = recorded.into_iter().chain(across).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "The replay agrees with its program, within the limits of heapdrome trace check, {}.",
            parts.join(", and ")
        )
    })
}
