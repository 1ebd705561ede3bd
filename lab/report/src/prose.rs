//! What a race shows, in sentences: the conclusion, the noise floor, the machine, the race itself.

use heapdrome_record::{Bytes, Comparison, EntrantResult, Machine, RaceResult, Role, Verdict};

use crate::foreign;
use crate::grid::Extent;
use crate::sheet::{OPERATIONS, PEAK_RSS, PEAK_TREE, Sheet, WALL, versus};
use crate::words;

/// What the reader should conclude, in plain words.
pub(crate) fn conclusion(sheet: &Sheet<'_>) -> String {
    let compared: Vec<(&EntrantResult, &Comparison)> = sheet
        .rivals()
        .filter_map(|rival| Some((rival, versus(rival, WALL)?)))
        .collect();
    let mut sentences = Vec::new();
    if sheet.result.rounds == 0 {
        sentences.push("No round is complete, so nothing can be said.".to_owned());
    } else if compared.is_empty() && sheet.rivals().next().is_some() {
        sentences.push("There is no interval before five rounds; run more.".to_owned());
    } else if compared.is_empty() {
        sentences.push(format!(
            "There is nothing to compare with {}.",
            sheet.baseline()
        ));
    } else {
        sentences.extend(on_speed(sheet, &compared));
        sentences.extend(on_memory(sheet, &compared));
        sentences.extend(on_noise(sheet, &compared));
    }
    if let names @ [_, ..] = &names(sheet.out.iter().copied())[..] {
        let verb = if names.len() == 1 { "does" } else { "do" };
        sentences.push(format!(
            "{} {verb} not count: see below.",
            words::listed(names)
        ));
    }
    sentences.join(" ")
}

/// Names on one line each.
fn names<'a>(entrants: impl Iterator<Item = &'a EntrantResult>) -> Vec<String> {
    entrants
        .map(|entrant| foreign::name(&entrant.allocator))
        .collect()
}

/// Names of the compared entrants that `wanted` picks.
fn picked(
    compared: &[(&EntrantResult, &Comparison)],
    wanted: impl Fn(&EntrantResult, &Comparison) -> bool,
) -> Vec<String> {
    names(
        compared
            .iter()
            .filter(|(rival, versus)| wanted(rival, versus))
            .map(|(rival, _)| *rival),
    )
}

/// Who is faster, who cannot be told apart, who is slower.
fn on_speed(sheet: &Sheet<'_>, compared: &[(&EntrantResult, &Comparison)]) -> Vec<String> {
    let baseline = sheet.baseline();
    let mut told = Vec::new();
    let mut sentences = Vec::new();
    match leader(compared) {
        None => sentences.push(format!(
            "No allocator was shown to be faster than {baseline}."
        )),
        Some((first, best)) => {
            let name = foreign::name(&first.allocator);
            sentences.push(format!("{name} leads: {}.", than(best, &baseline, true)));
            let overlaps = |rival: &EntrantResult, versus: &Comparison| {
                !std::ptr::eq(rival, first) && versus.low <= best.high
            };
            told = picked(compared, overlaps);
            if !told.is_empty() {
                sentences.push(format!(
                    "{} cannot be told apart from it.",
                    words::listed(&told)
                ));
            }
            told.push(name);
        }
    }
    for (verdict, opening) in [
        (Verdict::Faster, format!("Faster than {baseline} as well:")),
        (
            Verdict::Undecided,
            format!("No difference from {baseline} was shown for"),
        ),
        (Verdict::Slower, "Slower:".to_owned()),
    ] {
        let mut names = picked(compared, |_, versus| versus.verdict == verdict);
        names.retain(|name| !told.contains(name));
        if !names.is_empty() {
            sentences.push(format!("{opening} {}.", words::listed(&names)));
        }
    }
    sentences
}

/// The entrant with the best ratio among those shown to be faster.
fn leader<'a>(
    compared: &[(&'a EntrantResult, &'a Comparison)],
) -> Option<(&'a EntrantResult, &'a Comparison)> {
    let faster = compared
        .iter()
        .filter(|(_, versus)| versus.verdict == Verdict::Faster);
    faster
        .min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
        .copied()
}

/// What speed costs in memory, and who takes the least.
fn on_memory(sheet: &Sheet<'_>, compared: &[(&EntrantResult, &Comparison)]) -> Vec<String> {
    let metric = memory_metric(compared);
    let first = leader(compared).map(|(first, _)| first);
    let price = first.and_then(|first| {
        let memory = versus(first, metric)?;
        let name = foreign::name(&first.allocator);
        let taken = than(memory, &sheet.baseline(), false);
        Some(match memory.verdict {
            Verdict::Undecided => format!("{name} shows no difference in peak memory."),
            Verdict::More => format!("The price is memory: {name} takes {taken} at its peak."),
            _ => format!("{name} takes {taken} at its peak."),
        })
    });
    price
        .into_iter()
        .chain(least_memory(sheet, compared, metric))
        .collect()
}

/// Who takes the least memory, and at which speed, unless it is the leader.
fn least_memory(
    sheet: &Sheet<'_>,
    compared: &[(&EntrantResult, &Comparison)],
    metric: &str,
) -> Option<String> {
    let sizes = compared.iter().filter_map(|(rival, wall)| {
        let memory = versus(rival, metric)?;
        (memory.verdict == Verdict::Less).then_some((*rival, *wall, memory))
    });
    let (rival, wall, memory) = sizes.min_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio))?;
    if leader(compared).is_some_and(|(first, _)| std::ptr::eq(first, rival)) {
        return None;
    }
    let speed = match wall.verdict {
        Verdict::Undecided => "no difference in wall time shown".to_owned(),
        _ => words::comparison(wall, false),
    };
    let name = foreign::name(&rival.allocator);
    let taken = than(memory, &sheet.baseline(), false);
    Some(format!("Least memory: {name}, {taken} ({speed})."))
}

/// The memory figure to conclude from: the largest process's peak where it was compared, else the
/// tree's.
fn memory_metric(compared: &[(&EntrantResult, &Comparison)]) -> &'static str {
    let has_rss = compared
        .iter()
        .any(|(rival, _)| versus(rival, PEAK_RSS).is_some());
    if has_rss { PEAK_RSS } else { PEAK_TREE }
}

/// `12% less than system`, `2.50x as much as system`, `1.08x faster than system (1.06 to 1.10)`.
fn than(compared: &Comparison, baseline: &str, interval: bool) -> String {
    let whole = words::comparison(compared, interval);
    let (verdict, ends) = whole.split_once(" (").unwrap_or((&whole, ""));
    let joint = if verdict.ends_with("as much") {
        "as"
    } else {
        "than"
    };
    let ends = if ends.is_empty() {
        String::new()
    } else {
        format!(" ({ends}")
    };
    format!("{verdict} {joint} {baseline}{ends}")
}

/// How far the conclusion can be believed.
fn on_noise(sheet: &Sheet<'_>, compared: &[(&EntrantResult, &Comparison)]) -> Vec<String> {
    let Some(noise) = &sheet.result.noise_floor else {
        return vec![
            "The noise of this race is not known, so take this as a first impression.".into(),
        ];
    };
    let mut sentences = Vec::new();
    if noise.baseline_again.verdict != Verdict::Undecided {
        let itself = than(&noise.baseline_again, "itself", true);
        sentences.push(format!(
            "Beware: {} seemed {itself}, so differences of that size prove nothing here.",
            sheet.baseline()
        ));
    }
    let undecided: Vec<_> = compared
        .iter()
        .filter(|(_, versus)| versus.verdict == Verdict::Undecided)
        .collect();
    let smallest = noise.smallest_difference;
    if smallest > 1.0 && smallest.is_finite() {
        sentences.push(
            "The noise was so great that not even a factor of two was sure to be seen: the machine \
             was too busy, the command too short, or the rounds too few."
                .to_owned(),
        );
    } else if !undecided.is_empty() && smallest.is_finite() {
        let unseen = words::fraction(smallest);
        let wide = undecided
            .iter()
            .filter(|(_, versus)| half_width(versus) > 2.0 * smallest);
        let wide: Vec<_> = wide
            .map(|(entrant, _)| foreign::name(&entrant.allocator))
            .collect();
        let more = match wide.as_slice() {
            [] => String::new(),
            names => format!(
                ", and greater ones of {}, whose runs scattered",
                words::listed(names)
            ),
        };
        sentences.push(format!(
            "Differences under {unseen} may have gone unseen{more}."
        ));
    }
    if let Some((_, best)) = leader(compared)
        && 1.0 - best.ratio < noise.smallest_difference
    {
        sentences.push("The lead is smaller than what this race was sure to show.".to_owned());
    }
    sentences
}

/// How far the interval reaches to each side, as a fraction.
fn half_width(compared: &Comparison) -> f64 {
    (compared.high / compared.low).sqrt() - 1.0
}

/// The noise floor, in one sentence.
pub(crate) fn noise_floor(result: &RaceResult) -> String {
    let Some(noise) = &result.noise_floor else {
        return "not known: too few rounds of the baseline against itself.".to_owned();
    };
    let smallest = if noise.smallest_difference.is_finite() {
        words::fraction(noise.smallest_difference)
    } else {
        "not known after so few rounds".to_owned()
    };
    let itself = words::plain_ratio(&noise.baseline_again);
    let name = foreign::name(&result.baseline);
    format!(
        "the smallest difference this race could have shown: {smallest}; {name} against itself: \
         {itself}."
    )
}

/// The comparisons that the table shortens: those without a verdict on wall time, and memory.
pub(crate) fn in_full(sheet: &Sheet<'_>, extent: Extent) -> Vec<String> {
    let memory_too = !extent.memory_interval;
    let operations_too = !extent.operations_interval && sheet.is_figure(OPERATIONS);
    let on = |rival: &EntrantResult, metric: &str, label: &str, always: bool| {
        let compared = versus(rival, metric)?;
        let told = always || compared.verdict == Verdict::Undecided;
        told.then(|| format!("{label} {}", words::comparison_in_full(compared)))
    };
    let lines = sheet.rivals().filter_map(|rival| {
        let parts = [
            on(rival, WALL, "wall time", false),
            on(
                rival,
                OPERATIONS,
                "operations per CPU second",
                operations_too,
            )
            .filter(|_| operations_too),
            on(rival, PEAK_RSS, "peak RSS", memory_too),
            on(rival, PEAK_TREE, "tree peak", memory_too),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let name = foreign::name(&rival.allocator);
        (!parts.is_empty()).then(|| format!("{name}: {}", parts.join("; ")))
    });
    lines.collect()
}

/// Where it ran.
pub(crate) fn machine(machine: &Machine) -> String {
    let known = |text: &str| (!text.trim().is_empty()).then(|| foreign::line(text));
    let processors =
        (machine.processors > 0).then(|| words::count(machine.processors as u64, "processor"));
    let memory = (machine.memory_bytes > 0).then(|| Bytes(machine.memory_bytes).to_string());
    let parts = [
        known(&machine.processor),
        processors,
        memory,
        known(&machine.kernel),
        known(&machine.libc),
        known(&machine.distribution),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "not described".to_owned()
    } else {
        parts.join(", ")
    }
}

/// How the race went: rounds, seed, why it ended.
pub(crate) fn race(result: &RaceResult) -> String {
    let samples = result
        .entrants
        .iter()
        .filter_map(|entrant| Some(entrant.wall_s.as_ref()?.samples.len()));
    let runs = samples.sum::<usize>() as u64;
    let mut parts = vec![
        format!(
            "{} ({})",
            words::count(u64::from(result.rounds), "round"),
            words::count(runs, "timed run")
        ),
        format!("seed {}", result.seed),
    ];
    if !result.ended.is_empty() {
        parts.push(format!("ended: {}", foreign::line(&result.ended)));
    }
    if result.alpha.is_finite() && result.alpha > 0.0 {
        let alpha = words::fraction(result.alpha);
        parts.push(format!(
            "at most {alpha} risk of a false verdict on wall time in the whole race"
        ));
    }
    parts.push(format!(
        "{} by heapdrome {}",
        foreign::line(&result.started),
        foreign::line(&result.heapdrome)
    ));
    parts.join("; ")
}

/// How peaks were measured, where the samples say so.
pub(crate) fn methods(result: &RaceResult) -> Vec<String> {
    let of = |label: &str, pick: fn(&EntrantResult) -> Option<&heapdrome_record::Series>| {
        let mut known = result
            .entrants
            .iter()
            .filter_map(|e| pick(e)?.method.as_deref());
        known
            .next()
            .map(|method| format!("{label}: {}", foreign::line(method)))
    };
    let all = [
        of("peak RSS", |entrant| entrant.peak_rss_bytes.as_ref()),
        of("tree peak", |entrant| entrant.peak_tree_bytes.as_ref()),
    ];
    all.into_iter().flatten().collect()
}

/// Remarks on the race as a whole, on outputs that could not be compared, and on the machine.
pub(crate) fn remarks(result: &RaceResult) -> Vec<String> {
    let mut remarks = remarks_of_race(result);
    let machine = result.machine.remarks.iter();
    remarks.extend(machine.map(|remark| foreign::line(remark)));
    remarks
}

/// The same without those on the machine.
pub(crate) fn remarks_of_race(result: &RaceResult) -> Vec<String> {
    let remarks = result.remarks.iter().map(|remark| foreign::line(remark));
    let mut remarks: Vec<_> = remarks.collect();
    let baseline = result
        .entrants
        .iter()
        .find(|entrant| entrant.role == Role::Baseline);
    if baseline.is_some_and(|entrant| entrant.output == "output varies") {
        let told = "the baseline's own output varies from run to run, so outputs are not compared";
        remarks.push(told.to_owned());
    }
    remarks
}
