//! Why a race recommends no change.

use super::rivals::{Figure, Rival, Standing, near};
use super::{Advice, Conclusion, nothing_to_gain_in_time, sees_time, twin};
use crate::sheet::Sheet;
use crate::words::{self, listed};

/// The conclusion that keeps the baseline.
pub(super) fn stay<'a>(sheet: &Sheet<'a>, rivals: &[Rival<'a>]) -> Conclusion<'a> {
    let baseline = sheet.baseline();
    let undecided = rivals
        .iter()
        .any(|one| !one.is_slower() && !one.takes_the_same_time());
    let (advice, what, why) = if rivals.is_empty() {
        let why = "Only hardened allocators were compared with it, which give up speed for safety.";
        (
            Advice::Stay,
            format!("Stay with {baseline}."),
            why.to_owned(),
        )
    } else if nothing_to_gain_in_time(rivals) {
        let what = format!("Stay with {baseline}: no allocator matters here.");
        (Advice::NoneMatters, what, nearness(sheet, rivals))
    } else if rivals.iter().all(|one| one.is_near(Figure::Processor)) {
        let what = format!("Stay with {baseline}: no allocator changes its processor time.");
        let why = format!(
            "Every rival takes {baseline}'s processor time within {}, and none was shown to take less wall \
             time, or less memory in the same time.",
            near()
        );
        (Advice::NoneMatters, what, why)
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

/// That no rival differs by as much as matters.
fn nearness(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> String {
    let near = near();
    let who = match rivals {
        [only] => only.name(),
        _ => "Every rival".to_owned(),
    };
    let compared = rivals.iter().any(|one| one.on(Figure::Memory).is_some());
    let memory = match (compared, rivals.len()) {
        (false, _) => "",
        (true, 1) => ", and was not shown to take less memory",
        (true, _) => ", and none was shown to take less memory",
    };
    format!(
        "{who} takes {}'s time within {near}{memory}.",
        sheet.baseline()
    )
}

/// Who was shown to be worse, and that none was shown to be better.
fn beaten(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> String {
    let baseline = sheet.baseline();
    let smaller = rivals
        .iter()
        .filter(|one| one.standing(Figure::Memory) == Standing::Better && !one.is_slower());
    let smallest = smaller.min_by(|one, other| {
        one.ratio(Figure::Memory)
            .total_cmp(&other.ratio(Figure::Memory))
    });
    if let Some((one, memory)) = smallest.and_then(|one| Some((one, one.on(Figure::Memory)?))) {
        return format!(
            "{} takes {} memory than {baseline}, but what it costs in time is not known.",
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
        worse.push(format!("slower {}", are(&slower)));
    }
    if !larger.is_empty() {
        worse.push(format!("larger {}", are(&larger)));
    }
    let none = format!("None was shown to beat {baseline}");
    match worse.is_empty() {
        true => format!("{none}."),
        false => format!("{none}; {}.", worse.join("; ")),
    }
}

/// `is a`, `are a and b`.
fn are(names: &[String]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{verb} {}", listed(names))
}

/// The difference that may have gone unseen, and advice where that is a great one.
fn unseen(sheet: &Sheet<'_>, unclear: bool) -> String {
    let smallest = sheet
        .result
        .noise_floor
        .as_ref()
        .map(|noise| noise.smallest_difference)
        .filter(|smallest| smallest.is_finite());
    let sure = match smallest {
        None => "How small a difference could have been shown is not known".to_owned(),
        Some(smallest) if smallest > 1.0 => {
            "Not even a factor of two was sure to be shown".to_owned()
        }
        Some(smallest) if unclear => format!(
            "Only differences above {} were sure to be shown",
            words::fraction(smallest)
        ),
        Some(smallest) => format!(
            "Differences under {} may have gone unseen",
            words::fraction(smallest)
        ),
    };
    let sure = match twin(sheet) {
        Some(doubt) => format!("{sure}, and {doubt}"),
        None => sure,
    };
    match unclear {
        true => format!("{sure}: run it longer or on a quieter machine."),
        false => format!("{sure}."),
    }
}
