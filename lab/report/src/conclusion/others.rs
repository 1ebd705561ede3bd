//! Sentences that follow the conclusion: on further entrants, on widely scattered times, and on
//! entrants without a valid row.

use super::choice::{Choice, choice};
use super::rivals::{Figure, Rival, Standing, compared, near};
use crate::foreign;
use crate::sheet::Sheet;
use crate::words::{self, listed};

/// Returns the sentences that follow the conclusion; empty if there is nothing to add.
pub(crate) fn others(sheet: &Sheet<'_>) -> Vec<String> {
    let rivals = compared(sheet);
    let (hardened, plain): (Vec<Rival<'_>>, Vec<Rival<'_>>) = rivals
        .iter()
        .copied()
        .partition(|rival| rival.entrant.hardened);
    let choice = choice(sheet, &plain);
    let frontier = choice
        .as_ref()
        .and_then(|choice| on_frontier(&plain, choice));
    let mut sentences: Vec<String> = frontier.iter().map(|one| of_frontier(sheet, one)).collect();
    sentences.extend(by_time(sheet, &plain, choice.as_ref(), frontier.as_ref()));
    sentences.extend(of_hardened(sheet, &hardened));
    sentences.extend(scattered(sheet, &rivals));
    sentences.extend(out(sheet));
    sentences
}

/// Returns the entrant with the least memory among those that are slower and smaller than the
/// recommended one. The baseline must not beat the returned entrant: an entrant slower than the
/// baseline must use less memory, and an entrant that was not shown to be slower or faster must not
/// use more.
fn on_frontier<'a>(rivals: &[Rival<'a>], choice: &Choice<'a>) -> Option<Rival<'a>> {
    let beaten = |one: &Rival<'_>| {
        let memory = one.standing(Figure::Memory);
        match one.standing(Figure::Wall) {
            Standing::Better => false,
            Standing::Worse => memory != Standing::Better,
            _ => memory == Standing::Worse,
        }
    };
    let trades = |one: &&Rival<'_>| {
        !beaten(one)
            && choice.rival.is_below(one, Figure::Wall)
            && one.is_below(&choice.rival, Figure::Memory)
    };
    let found = rivals.iter().filter(trades);
    let least = |one: &&Rival<'_>, other: &&Rival<'_>| {
        one.ratio(Figure::Memory)
            .total_cmp(&other.ratio(Figure::Memory))
    };
    found.min_by(least).copied()
}

fn of_frontier(sheet: &Sheet<'_>, found: &Rival<'_>) -> String {
    format!(
        "Where memory matters more: {}, {}.",
        found.name(),
        found.figures(sheet)
    )
}

/// Lists the entrants that no sentence has named yet, grouped by the verdict on their wall time.
/// Omits entrants whose wall time is not judged.
fn by_time(
    sheet: &Sheet<'_>,
    rivals: &[Rival<'_>],
    choice: Option<&Choice<'_>>,
    frontier: Option<&Rival<'_>>,
) -> Vec<String> {
    let baseline = sheet.baseline();
    let told = |one: &Rival<'_>| {
        let named = choice.map(|choice| {
            let taken = std::iter::once(&choice.rival);
            taken.chain(&choice.equals).chain(&choice.smaller)
        });
        let mut named = named.into_iter().flatten().chain(frontier);
        named.any(|named| one.is(named))
    };
    let kinds = [
        (Standing::Better, format!("Also faster than {baseline}:")),
        (
            Standing::Open,
            format!("No difference in wall time from {baseline} was shown for"),
        ),
        (
            Standing::Same,
            format!("Within {} of {baseline}'s wall time:", near()),
        ),
        (Standing::Worse, "Slower:".to_owned()),
    ];
    let sentence = |(standing, opening): (Standing, String)| {
        let of = rivals.iter();
        let of = of.filter(|one| one.standing(Figure::Wall) == standing && !told(one));
        let names: Vec<_> = of.map(Rival::name).collect();
        (!names.is_empty()).then(|| format!("{opening} {}.", listed(&names)))
    };
    kinds.into_iter().filter_map(sentence).collect()
}

/// Returns a sentence on the cost of hardening. Hardened entrants are listed separately, because
/// their purpose is not speed.
fn of_hardened(sheet: &Sheet<'_>, hardened: &[Rival<'_>]) -> Option<String> {
    let told = hardened
        .iter()
        .map(|one| format!("{}: {}", one.name(), one.figures(sheet)));
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| format!("Among the hardened allocators, {}.", told.join("; ")))
}

/// Returns a sentence on the rivals with widely scattered runs. For these, even differences above
/// the race's smallest detectable one may have gone undetected.
fn scattered(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> Option<String> {
    let smallest = sheet.result.noise_floor.as_ref()?.smallest_difference;
    let is_wide = |one: &&Rival<'_>| {
        one.standing(Figure::Wall) == Standing::Open
            && one.on(Figure::Wall).is_some_and(|wall| {
                let half_width = (wall.high / wall.low).sqrt() - 1.0;
                half_width > 2.0 * smallest
            })
    };
    let wide: Vec<_> = rivals.iter().filter(is_wide).map(Rival::name).collect();
    let unseen = words::fraction(smallest);
    (!wide.is_empty() && smallest <= 1.0).then(|| {
        format!(
            "Differences above {unseen} may have gone undetected for {}, whose times vary more.",
            listed(&wide)
        )
    })
}

/// Lists the entrants that raced but have no valid row.
fn out(sheet: &Sheet<'_>) -> Option<String> {
    let out = sheet.out.iter();
    let names: Vec<_> = out.map(|out| foreign::name(&out.allocator)).collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    (!names.is_empty()).then(|| format!("{} {verb} not count.", listed(&names)))
}
