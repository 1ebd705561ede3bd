//! The reasons why a race recommends no change.

use super::rivals::{Figure, Rival, Standing, near};
use super::{Advice, Conclusion, no_speed_differs, sees_time, twin};
use crate::sheet::Sheet;
use crate::words::{self, listed};
use crate::{prose, relevance};

/// Reason for keeping the baseline if malloc hardly matters for a command.
const FEW_CALLS: &str = "The command's calls of malloc take less than 1% of its processor time, and its page faults hardly \
     depend on the allocator.";

/// Returns the conclusion that keeps the baseline.
pub(super) fn stay<'a>(sheet: &Sheet<'a>, rivals: &[Rival<'a>]) -> Conclusion<'a> {
    let baseline = sheet.baseline();
    let undecided = rivals
        .iter()
        .any(|one| !one.is_slower() && !one.is_as_fast_as_the_baseline());
    let (advice, what, why) = if rivals.is_empty() {
        let why = "It was compared only with hardened allocators, which trade speed for safety.";
        (
            Advice::Stay,
            format!("Stay with {baseline}."),
            why.to_owned(),
        )
    } else if no_speed_differs(rivals) {
        let what = format!("Stay with {baseline}: no allocator matters here.");
        (Advice::NoneMatters, what, nearness(sheet, rivals))
    } else if rivals
        .iter()
        .all(|one| one.standing(Figure::Processor) == Standing::Same)
    {
        let what = format!(
            "Stay with {baseline}: no allocator changes its processor time by enough to matter."
        );
        let less = little(sheet, rivals).map_or_else(
            || {
                ", and none was shown to take less wall time, or less memory in the same time"
                    .to_owned()
            },
            |little| format!("; {little}"),
        );
        let why = format!(
            "Every rival's processor time is within {} of {baseline}'s{less}.",
            near()
        );
        (Advice::NoneMatters, what, why)
    } else if relevance::hardly_matters(&sheet.result.entrants) {
        let what = format!("Stay with {baseline}: malloc hardly matters here.");
        (Advice::NoneMatters, what, FEW_CALLS.to_owned())
    } else if undecided && !sees_time(sheet) {
        let what = format!("No answer: keep {baseline} for now.");
        (Advice::Unclear, what, beaten(sheet, rivals))
    } else {
        let what = format!("Stay with {baseline}.");
        (Advice::Stay, what, beaten(sheet, rivals))
    };
    Conclusion {
        sure: unseen(sheet, matches!(advice, Advice::Unclear)),
        advice,
        what,
        why,
    }
}

/// Formats the statement that no rival's time differs by enough to matter, with the findings on
/// memory.
fn nearness(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> String {
    let near = near();
    let who = match rivals {
        [only] => format!("{}'s time", only.name()),
        _ => "Every rival's time".to_owned(),
    };
    let compared = rivals.iter().any(|one| one.on(Figure::Memory).is_some());
    let smaller = rivals.iter().any(|one| gains_little(one, Figure::Memory));
    let memory = match (compared && !smaller, rivals.len()) {
        (false, _) => "",
        (true, 1) => ", and it was not shown to take less memory",
        (true, _) => ", and none was shown to take less memory",
    };
    let little = little(sheet, rivals).map_or_else(String::new, |little| format!("; {little}"));
    format!(
        "{who} is within {near} of {}'s{memory}{little}.",
        sheet.baseline()
    )
}

/// Returns whether a rival was shown to be better by too little to matter. A rival that was shown
/// to be slower does not count.
fn gains_little(one: &Rival<'_>, figure: Figure) -> bool {
    one.is_better(figure) && !one.gains(figure) && !one.is_slower()
}

/// Describes at most one rival for time and one for memory that were shown to be better by too
/// little to matter. Returns `None` if there is none.
fn little(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> Option<String> {
    let best = |figure: Figure| {
        let better = rivals.iter().filter(move |one| gains_little(one, figure));
        better.min_by(|one, other| one.ratio(figure).total_cmp(&other.ratio(figure)))
    };
    let told = |figure: Figure| {
        let one = best(figure)?;
        let shown = words::comparison(one.on(figure)?, false);
        let (name, noun) = (one.name(), figure.name(sheet));
        Some(match figure {
            Figure::Metric => format!("{name} shows {shown} {noun}"),
            Figure::Wall | Figure::Processor => format!("{name} takes {shown} {noun}"),
            Figure::Memory => format!("{name} takes {shown} memory than {}", sheet.baseline()),
        })
    };
    let time = Figure::SPEEDS.into_iter().find_map(told);
    let told: Vec<String> = time.into_iter().chain(told(Figure::Memory)).collect();
    (!told.is_empty())
        .then(|| format!("{}, too little to act on (under {})", listed(&told), near()))
}

/// Returns the reason for keeping the baseline: the rivals that were shown to be worse. If a rival
/// uses less memory at an unknown cost in time, names that rival instead.
fn beaten(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> String {
    let baseline = sheet.baseline();
    let smaller = rivals
        .iter()
        .filter(|one| one.gains(Figure::Memory) && !one.is_slower());
    let smallest = smaller.min_by(|one, other| {
        one.ratio(Figure::Memory)
            .total_cmp(&other.ratio(Figure::Memory))
    });
    if let Some((one, memory)) = smallest.and_then(|one| Some((one, one.on(Figure::Memory)?))) {
        return format!(
            "{} takes {} memory than {baseline}, but its cost in time is unknown.",
            one.name(),
            words::comparison(memory, false)
        );
    }
    let slower: Vec<String> = rivals
        .iter()
        .filter(|one| one.is_slower())
        .map(Rival::name)
        .collect();
    let more =
        |one: &&Rival<'_>| one.standing(Figure::Memory) == Standing::Worse && !one.is_slower();
    let larger: Vec<String> = rivals.iter().filter(more).map(Rival::name).collect();
    let mut worse = Vec::new();
    if !slower.is_empty() {
        worse.push(does(&slower, ["is slower", "are slower"]));
    }
    if !larger.is_empty() {
        worse.push(does(
            &larger,
            [
                "takes more memory, and no gain that matters was shown",
                "take more memory, and no gain that matters was shown",
            ],
        ));
    }
    let none =
        little(sheet, rivals).unwrap_or_else(|| format!("None was shown to beat {baseline}"));
    match worse.is_empty() {
        true => format!("{none}."),
        false => format!("{none}; {}.", worse.join("; ")),
    }
}

/// Joins names with a verb: `a is slower`, `a and b are slower`.
fn does(names: &[String], [one, many]: [&str; 2]) -> String {
    let verb = if names.len() == 1 { one } else { many };
    format!("{} {verb}", listed(names))
}

/// Formats the difference that may have gone undetected. If `unclear` is set, also advises a longer
/// race or a quieter machine.
fn unseen(sheet: &Sheet<'_>, unclear: bool) -> String {
    let smallest = prose::smallest_differences(sheet.result);
    let sure = if smallest.is_empty() {
        "The smallest detectable difference is not known".to_owned()
    } else if smallest.iter().all(|(_, smallest)| *smallest > 1.0) {
        "Not even a factor of two was reliably detectable".to_owned()
    } else {
        let told = prose::told_differences(&smallest);
        match unclear {
            true => format!("Only differences above {told} were reliably detectable"),
            false => format!("Differences under {told} may have gone undetected"),
        }
    };
    let sure = match twin(sheet) {
        Some(doubt) => format!("{sure}, and {doubt}"),
        None => sure,
    };
    match unclear {
        true => format!("{sure}. Run the race longer or on a quieter machine."),
        false => format!("{sure}."),
    }
}
