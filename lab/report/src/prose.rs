//! Sentences on a race or a collection: the noise floor, the machine, the rounds, how memory was
//! measured, the remarks, and the comparisons in full.

use heapdrome_schema::{
    Bytes, Collection, EntrantResult, Machine, Output, PEAK_RSS, RaceResult, Verdict, WALL, spoken,
};

use crate::entrant::{OPERATIONS, PEAK_TREE, versus};
use crate::foreign;
use crate::grid::Extent;
use crate::sheet::Sheet;
use crate::words;

/// Formats the noise floor of wall time as one sentence.
pub(crate) fn noise_floor(result: &RaceResult) -> String {
    let Some(noise) = &result.noise_floor else {
        return "not known: too few rounds of the baseline against itself.".to_owned();
    };
    let shows = match noise.smallest_difference {
        unknown if !unknown.is_finite() => "not known after so few rounds".to_owned(),
        large if large > 1.0 => "not even a factor of two is reliably detected".to_owned(),
        smallest => format!(
            "differences above {} are reliably detected, smaller ones sometimes",
            words::fraction(smallest)
        ),
    };
    let itself = words::plain_ratio(&noise.baseline_again);
    let name = foreign::name(&result.baseline);
    format!("{shows}; {name} against itself {itself}.")
}

/// Formats the noise floor as one sentence, with the smallest detectable difference of each judged
/// figure.
pub(crate) fn noise_in_brief(result: &RaceResult) -> String {
    let Some(noise) = &result.noise_floor else {
        return "not known after so few rounds.".to_owned();
    };
    let smallest = smallest_differences(result);
    let shows = match smallest.is_empty() {
        true => "not known after so few rounds".to_owned(),
        false => format!(
            "differences above {} are reliably detected, smaller ones sometimes",
            told_differences(&smallest)
        ),
    };
    let itself = words::plain_ratio(&noise.baseline_again);
    let name = foreign::short_name(&result.baseline, 14);
    format!("{shows}; {name} against itself {itself}.")
}

/// Returns each judged figure with the smallest difference that the race could have shown, if
/// known.
pub(crate) fn smallest_differences(result: &RaceResult) -> Vec<(String, f64)> {
    let Some(noise) = &result.noise_floor else {
        return Vec::new();
    };
    let named = |name: &str| foreign::line(spoken(name));
    let mut known: Vec<(String, f64)> = match noise.smallest_by_figure.is_empty() {
        true => vec![(named(WALL), noise.smallest_difference)],
        false => {
            let judged = result.options.judged.iter();
            let smallest =
                |name: &String| Some((named(name), *noise.smallest_by_figure.get(name)?));
            judged.filter_map(smallest).collect()
        }
    };
    known.retain(|(_, smallest)| smallest.is_finite());
    known
}

/// Formats differences: `1.3%` for one figure, `26% in wall time and 1.3% in processor time` for
/// several.
pub(crate) fn told_differences(smallest: &[(String, f64)]) -> String {
    if let [(_, only)] = smallest {
        return words::fraction(*only);
    }
    let told = smallest
        .iter()
        .map(|(name, smallest)| format!("{} in {name}", words::fraction(*smallest)));
    words::listed(&told.collect::<Vec<_>>())
}

/// Returns in full the undecided comparisons of wall time and memory, and the comparisons of memory
/// and operations whose interval the table omits.
pub(crate) fn in_full(sheet: &Sheet<'_>, extent: Extent) -> Vec<String> {
    let memory_too = !extent.memory_interval;
    let operations_too = !extent.operations_interval && sheet.is_figure(OPERATIONS);
    let on = |rival: &EntrantResult, metric: &str, label: &str, always: bool| {
        let compared = versus(rival, metric)?;
        let told = compared.verdict != Verdict::NotJudged
            && (always || compared.verdict == Verdict::Undecided);
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

/// Describes the machine of a race or a collection.
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

/// Describes the race: its rounds, its seed, the reason for its end, the risk of a false verdict,
/// its date, and the version of heapdrome.
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
            "at most {alpha} risk of a false verdict on {} in the whole race",
            judged(result)
        ));
    }
    parts.push(format!(
        "{} by heapdrome {}",
        foreign::line(&result.started),
        foreign::line(&result.heapdrome)
    ));
    parts.join("; ")
}

/// Lists the judged figures in words.
fn judged(result: &RaceResult) -> String {
    let names = result.options.judged.iter();
    let names: Vec<_> = names.map(|name| foreign::line(spoken(name))).collect();
    names.join(" or ")
}

/// Describes how peaks were measured, if the series state their method.
pub(crate) fn methods(result: &RaceResult) -> Vec<String> {
    let of = |label: &str, pick: fn(&EntrantResult) -> Option<&heapdrome_schema::Series>| {
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

/// Returns remarks on the race as a whole, on outputs that could not be compared, and on the
/// machine.
pub(crate) fn remarks(result: &RaceResult) -> Vec<String> {
    let mut remarks = remarks_of_race(result);
    let machine = result.machine.remarks.iter();
    remarks.extend(machine.map(|remark| foreign::line(remark)));
    remarks
}

/// Corrects a stored remark, because older versions of heapdrome stored a small probability as
/// zero.
fn saved_remark(text: &str) -> String {
    foreign::line(text).replace("(p = 0.000)", "(p < 0.001)")
}

/// Returns remarks on the race, except those on the machine.
pub(crate) fn remarks_of_race(result: &RaceResult) -> Vec<String> {
    let remarks = result.remarks.iter().map(|remark| saved_remark(remark));
    let mut remarks: Vec<_> = remarks.collect();
    let baseline = result.baseline_row();
    if baseline.is_some_and(|entrant| entrant.output == Output::Varies) {
        let told = "the baseline's own output varies from run to run, so outputs are not compared";
        remarks.push(told.to_owned());
    }
    remarks
}

/// Returns the remarks that apply to all races of a collection: those on the collection itself, and
/// those on the machine.
pub(crate) fn remarks_of_collection(collection: &Collection) -> Vec<String> {
    let all = collection.remarks.iter().chain(&collection.machine.remarks);
    all.map(|remark| foreign::line(remark)).collect()
}
