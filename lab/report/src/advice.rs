//! What a race recommends, in one paragraph: who to take and why, what it costs, and how far that can
//! be believed.

use heapdrome_record::{Comparison, EntrantResult, Verdict};

use crate::foreign;
use crate::sheet::{PEAK_RSS, PEAK_TREE, Sheet, WALL, versus};
use crate::words::{self, listed};

/// A smallest difference from which on a race that shows none says nothing about speed.
const COARSE: f64 = 0.1;

/// A rival whose time was compared.
#[derive(Clone, Copy)]
struct Rival<'a> {
    entrant: &'a EntrantResult,
    wall: &'a Comparison,
    memory: Option<&'a Comparison>,
}

impl Rival<'_> {
    fn name(&self) -> String {
        foreign::name(&self.entrant.allocator)
    }

    fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.entrant, other.entrant)
    }

    /// Whether its memory was shown to be less than the other's, both compared with the baseline.
    fn is_smaller_than(&self, other: &Self) -> bool {
        let ends = self.memory.zip(other.memory);
        ends.is_some_and(|(own, other)| own.high < other.low)
    }

    /// `1.50x faster (1.48 to 1.51), 12% more memory`.
    fn figures(&self, interval: bool) -> String {
        let time = match self.wall.verdict {
            Verdict::Undecided => "no difference in time shown".to_owned(),
            _ => words::comparison(self.wall, interval),
        };
        match self.memory {
            None => time,
            Some(memory) if memory.verdict == Verdict::Undecided => {
                format!("{time}, no difference in memory shown")
            }
            Some(memory) => format!("{time}, {} memory", words::comparison(memory, false)),
        }
    }
}

/// What the reader should conclude, in plain words.
pub(crate) fn conclusion(sheet: &Sheet<'_>) -> String {
    let mut sentences = sentences(sheet, Told::Everyone);
    let out: Vec<_> = sheet
        .out
        .iter()
        .map(|out| foreign::name(&out.allocator))
        .collect();
    if !out.is_empty() {
        let verb = if out.len() == 1 { "does" } else { "do" };
        sentences.push(format!("{} {verb} not count: see below.", listed(&out)));
    }
    sentences.join(" ")
}

/// The same without those who are not recommended, for one race among many.
pub(crate) fn in_brief(sheet: &Sheet<'_>) -> String {
    sentences(sheet, Told::Recommended).join(" ")
}

/// Whom a conclusion tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Everyone,
    Recommended,
}

fn sentences(sheet: &Sheet<'_>, told: Told) -> Vec<String> {
    let rivals = compared(sheet);
    let mut sentences = Vec::new();
    if sheet.result.rounds == 0 {
        sentences.push("No round is complete, so nothing can be said.".to_owned());
    } else if sheet.result.options.unproven {
        let unproven =
            "No proof was taken of which allocator served malloc, so nothing is recommended.";
        sentences.push(unproven.to_owned());
    } else if rivals.is_empty() && sheet.rivals().next().is_some() {
        sentences.push("There is no interval before five rounds; run more.".to_owned());
    } else if rivals.is_empty() {
        let baseline = sheet.baseline();
        sentences.push(format!("There is nothing to compare with {baseline}."));
    } else {
        let (hardened, plain): (Vec<_>, Vec<_>) =
            rivals.iter().partition(|rival| rival.entrant.hardened);
        let taken = taken(sheet, &plain);
        sentences.extend(recommendation(sheet, &plain, taken));
        if told == Told::Everyone {
            sentences.extend(others(sheet, &plain, taken));
            sentences.extend(on_hardened(&hardened));
        }
        sentences.extend(on_noise(sheet, &rivals, taken));
        sentences.extend(taken.and_then(|taken| caveats(sheet, &taken, told)));
    }
    sentences
}

/// The rivals whose time was compared, with the memory of their largest process, or of their trees
/// where no race has that.
fn compared<'a>(sheet: &Sheet<'a>) -> Vec<Rival<'a>> {
    let has_rss = sheet
        .rivals()
        .any(|rival| versus(rival, PEAK_RSS).is_some());
    let metric = if has_rss { PEAK_RSS } else { PEAK_TREE };
    let rival = |entrant: &'a EntrantResult| {
        Some(Rival {
            entrant,
            wall: versus(entrant, WALL)?,
            memory: versus(entrant, metric),
        })
    };
    sheet.rivals().filter_map(rival).collect()
}

/// The fastest of those shown to be faster; else the smallest of those shown to be smaller, where the
/// race would have shown what it costs in time.
fn taken<'a>(sheet: &Sheet<'_>, rivals: &[Rival<'a>]) -> Option<Rival<'a>> {
    let faster = rivals
        .iter()
        .filter(|one| one.wall.verdict == Verdict::Faster);
    let fastest = faster.min_by(|a, b| a.wall.ratio.total_cmp(&b.wall.ratio));
    let smallest = || smallest(rivals).filter(|_| sees_time(sheet));
    fastest.copied().or_else(smallest)
}

/// The smallest of those shown to be smaller and not to be slower.
fn smallest<'a>(rivals: &[Rival<'a>]) -> Option<Rival<'a>> {
    let smaller = rivals.iter().filter_map(|one| {
        let less = one
            .memory
            .filter(|memory| memory.verdict == Verdict::Less)?;
        (one.wall.verdict != Verdict::Slower).then_some((one, less.ratio))
    });
    let smallest = smaller.min_by(|a, b| a.1.total_cmp(&b.1));
    smallest.map(|(one, _)| *one)
}

/// Whether the race could show more than great differences of time.
fn sees_time(sheet: &Sheet<'_>) -> bool {
    let noise = sheet.result.noise_floor.as_ref();
    noise.is_some_and(|noise| noise.smallest_difference <= COARSE)
}

/// Who to take and why, and who is as good.
fn recommendation(
    sheet: &Sheet<'_>,
    rivals: &[Rival<'_>],
    taken: Option<Rival<'_>>,
) -> Vec<String> {
    let baseline = sheet.baseline();
    let Some(taken) = taken else {
        return vec![stay(sheet, rivals)];
    };
    let figures = taken.figures(true);
    let mut sentences = vec![format!("Take {}: {figures} than {baseline}.", taken.name())];
    if figures.ends_with("shown") || figures.ends_with("as much memory") {
        sentences = vec![format!(
            "Take {}: against {baseline} {figures}.",
            taken.name()
        )];
    }
    let equals = equals(rivals, &taken);
    let smaller = equals.iter().filter(|one| one.is_smaller_than(&taken));
    let smaller = smaller.min_by(|a, b| memory_of(a).total_cmp(&memory_of(b)));
    let names: Vec<_> = equals.iter().map(Rival::name).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    if let Some(smaller) = smaller {
        sentences.push(format!(
            "{} {verb} as fast within this race's noise, and {} takes less memory ({}).",
            listed(&names),
            smaller.name(),
            smaller.figures(false)
        ));
    } else if !names.is_empty() {
        let names = listed(&names);
        sentences.push(format!("{names} {verb} as fast within this race's noise."));
    }
    sentences.extend(on_frontier(rivals, &taken).map(|found| {
        let (name, figures) = (found.name(), found.figures(false));
        format!("Where memory matters more: {name}, {figures}.")
    }));
    sentences
}

/// Those shown to be faster than the baseline that cannot be told apart from the fastest.
fn equals<'a>(rivals: &[Rival<'a>], taken: &Rival<'_>) -> Vec<Rival<'a>> {
    let fast = taken.wall.verdict == Verdict::Faster;
    let equal = |one: &&Rival<'_>| {
        fast && !one.is(taken)
            && one.wall.verdict == Verdict::Faster
            && one.wall.low <= taken.wall.high
    };
    rivals.iter().filter(equal).copied().collect()
}

fn memory_of(rival: &Rival<'_>) -> f64 {
    rival.memory.map_or(f64::INFINITY, |memory| memory.ratio)
}

/// Who takes the least memory and more time than the one to take. The baseline must not beat it: one
/// that is slower must take less memory, and one that was not shown to be faster must not take more.
fn on_frontier<'a>(rivals: &[Rival<'a>], taken: &Rival<'_>) -> Option<Rival<'a>> {
    let beaten = |one: &Rival<'_>| {
        let memory = one.memory.map(|memory| memory.verdict);
        match one.wall.verdict {
            Verdict::Faster => false,
            Verdict::Slower => memory != Some(Verdict::Less),
            _ => memory == Some(Verdict::More),
        }
    };
    let slower_than_taken = |one: &&Rival<'_>| {
        !one.is(taken)
            && !beaten(one)
            && one.wall.low > taken.wall.high
            && one.is_smaller_than(taken)
    };
    let found = rivals.iter().filter(slower_than_taken);
    found
        .min_by(|a, b| memory_of(a).total_cmp(&memory_of(b)))
        .copied()
}

/// Why no change is recommended.
fn stay(sheet: &Sheet<'_>, rivals: &[Rival<'_>]) -> String {
    let baseline = sheet.baseline();
    if let Some((smaller, memory)) = smallest(rivals).and_then(|one| Some((one, one.memory?))) {
        return format!(
            "{} takes less memory than {baseline} ({}), and this race could show great differences of \
             time only.",
            smaller.name(),
            words::comparison(memory, false)
        );
    }
    let undecided = rivals
        .iter()
        .any(|one| one.wall.verdict == Verdict::Undecided);
    if undecided && !sees_time(sheet) {
        return format!(
            "This race recommends nothing: none was shown to be faster or smaller than {baseline}, and \
             it could show great differences only."
        );
    }
    match rivals {
        [] => format!("This race recommends nothing beside {baseline} but what is hardened."),
        _ => format!("Stay with {baseline}: none was shown to be faster or smaller."),
    }
}

/// Everyone who has not been told of yet, by what was shown of their time.
fn others(sheet: &Sheet<'_>, rivals: &[Rival<'_>], taken: Option<Rival<'_>>) -> Vec<String> {
    let baseline = sheet.baseline();
    let equals = taken.map_or_else(Vec::new, |taken| equals(rivals, &taken));
    let frontier = taken.and_then(|taken| on_frontier(rivals, &taken));
    let told = |one: &Rival<'_>| {
        let mut told = taken.iter().chain(&equals).chain(&frontier);
        told.any(|told| one.is(told))
    };
    let mut sentences = Vec::new();
    for (verdict, opening) in [
        (Verdict::Faster, format!("Faster than {baseline} as well:")),
        (
            Verdict::Undecided,
            format!("No difference in time from {baseline} was shown for"),
        ),
        (Verdict::Slower, "Slower:".to_owned()),
    ] {
        let of = rivals
            .iter()
            .filter(|one| one.wall.verdict == verdict && !told(one));
        let names: Vec<_> = of.map(Rival::name).collect();
        if !names.is_empty() {
            sentences.push(format!("{opening} {}.", listed(&names)));
        }
    }
    let more = |one: &Rival<'_>| {
        one.memory
            .is_some_and(|memory| memory.verdict == Verdict::More)
    };
    if taken.is_none() && rivals.len() > 1 && rivals.iter().all(more) {
        sentences.push(format!("Each takes more memory than {baseline}."));
    }
    sentences
}

/// What hardening costs: it is bought for another reason than speed.
fn on_hardened(hardened: &[Rival<'_>]) -> Option<String> {
    let (even, decided): (Vec<_>, Vec<_>) = hardened
        .iter()
        .partition(|one| one.wall.verdict == Verdict::Undecided);
    let told = |one: &&Rival<'_>| format!("{} {}", one.name(), one.figures(false));
    let decided: Vec<_> = decided.iter().map(told).collect();
    let even: Vec<_> = even.iter().map(|one| one.name()).collect();
    let even = match even.as_slice() {
        [] => None,
        names => Some(format!(
            "no difference in time was shown for {}",
            listed(names)
        )),
    };
    let parts: Vec<_> = decided.into_iter().chain(even).collect();
    (!parts.is_empty()).then(|| format!("Of the hardened: {}.", parts.join("; ")))
}

/// How far the conclusion can be believed.
fn on_noise(sheet: &Sheet<'_>, rivals: &[Rival<'_>], taken: Option<Rival<'_>>) -> Vec<String> {
    let Some(noise) = &sheet.result.noise_floor else {
        return vec![
            "The noise of this race is not known, so take this as a first impression.".into(),
        ];
    };
    let mut sentences = Vec::new();
    if noise.baseline_again.verdict != Verdict::Undecided {
        let itself = words::comparison(&noise.baseline_again, true);
        sentences.push(format!(
            "Beware: {} seemed {itself} than itself, so differences of that size prove nothing here.",
            sheet.baseline()
        ));
    }
    let smallest = noise.smallest_difference;
    let undecided = rivals
        .iter()
        .filter(|one| one.wall.verdict == Verdict::Undecided);
    let undecided: Vec<_> = undecided.collect();
    if smallest > 1.0 && smallest.is_finite() {
        sentences.push(
            "The noise was so great that not even a factor of two was sure to be seen: the machine \
             was too busy, the command too short, or the rounds too few."
                .to_owned(),
        );
    } else if !undecided.is_empty() && smallest.is_finite() {
        let wide = undecided
            .iter()
            .filter(|one| half_width(one.wall) > 2.0 * smallest);
        let wide: Vec<_> = wide.map(|one| one.name()).collect();
        let more = match wide.as_slice() {
            [] => String::new(),
            names => format!(
                ", and greater ones of {}, whose runs scattered",
                listed(names)
            ),
        };
        let unseen = words::fraction(smallest);
        sentences.push(format!(
            "Differences under {unseen} may have gone unseen{more}."
        ));
    }
    let lead = taken
        .map(|taken| 1.0 - taken.wall.ratio)
        .filter(|lead| *lead > 0.0);
    let faster = taken.is_some_and(|taken| taken.wall.verdict == Verdict::Faster);
    if lead.is_some_and(|lead| faster && lead < smallest) {
        sentences.push("The lead is smaller than what this race was sure to show.".to_owned());
    }
    sentences
}

/// How far the interval reaches to each side, as a fraction.
fn half_width(compared: &Comparison) -> f64 {
    (compared.high / compared.low).sqrt() - 1.0
}

/// What to know of the one to take before taking it.
fn caveats(sheet: &Sheet<'_>, taken: &Rival<'_>, told: Told) -> Option<String> {
    let row = taken.entrant;
    let mut known = Vec::new();
    if row.output == "different" {
        let baseline = sheet.baseline();
        known.push(format!("its output differs from that under {baseline}"));
    }
    match &row.proof {
        None => known.push("no proof was taken that it served".to_owned()),
        Some(proof) => {
            let elsewhere: f64 = proof.unserved.iter().map(|one| one.cpu_share).sum();
            if elsewhere > 0.0 {
                let share = words::fraction(elsewhere);
                known.push(format!("{share} of the CPU time did not run on it"));
            }
        }
    }
    if !row.known_faults.is_empty() {
        let faults = words::count(row.known_faults.len() as u64, "known fault");
        known.push(format!("it has {faults}"));
    }
    if known.is_empty() {
        return None;
    }
    // Where many races are told of, their notes are not.
    let more = match told {
        Told::Everyone => " (see the notes)",
        Told::Recommended => "",
    };
    Some(format!(
        "Before you take {}: {}{more}.",
        taken.name(),
        listed(&known)
    ))
}
