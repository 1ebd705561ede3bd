//! Formatting of ratios, amounts and lists of names, common to the outputs for readers.

use heapdrome_schema::{Better, Bytes, Comparison, Nanoseconds, Series, Verdict};

pub(crate) use heapdrome_schema::grouped;

use crate::entrant;

/// The content of a cell that has no figure.
pub(crate) const NONE: &str = "-";

/// Text of a comparison that shows no difference.
pub(crate) const NO_DIFFERENCE: &str = "no difference shown";

/// Text of a comparison if the speed of the replay supports no claim on the figure.
pub(crate) const NOT_JUDGED: &str = "not judged at this speed";

/// Returns the text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Formats the verdict with its estimate, with its interval if `interval` is set, and with the
/// properties in which a replay misses its program. A ratio of 0.926 reads `7.4% less`, in time as
/// in memory.
pub(crate) fn comparison(compared: &Comparison, interval: bool) -> String {
    let verdict = bare_comparison(compared, interval);
    let names = compared.misses.iter().map(|one| one.name().to_owned());
    let names: Vec<_> = names.collect();
    match names.is_empty() || compared.verdict == Verdict::NotJudged {
        true => verdict,
        false => format!("{verdict}, but the replay misses {}", listed(&names)),
    }
}

/// Formats the verdict without the misses of a replay.
pub(crate) fn bare_comparison(compared: &Comparison, interval: bool) -> String {
    let ends = [compared.ratio, compared.low, compared.high];
    let is_shown = !matches!(compared.verdict, Verdict::Undecided | Verdict::NotJudged);
    if is_shown && ends.iter().any(|end| !end.is_finite() || *end <= 0.0) {
        return "unknown".to_owned();
    }
    let [ratio, low, high] = ends;
    match compared.verdict {
        Verdict::Undecided => NO_DIFFERENCE.to_owned(),
        Verdict::NotJudged => NOT_JUDGED.to_owned(),
        Verdict::Faster | Verdict::Less if ratio * ABSURD_FACTOR < 1.0 => {
            format!("less than 1/{ABSURD_FACTOR} as much")
        }
        Verdict::Faster | Verdict::Less => {
            let parts = [1.0 - ratio, 1.0 - high, 1.0 - low];
            percent(parts, "less", &[0.0, 100.0], interval)
        }
        Verdict::Slower | Verdict::More if ratio >= 2.0 => times([ratio, low, high], interval),
        Verdict::Slower | Verdict::More => {
            let parts = [ratio - 1.0, low - 1.0, high - 1.0];
            percent(parts, "more", &[0.0], interval)
        }
    }
}

/// Formats a comparison with all its evidence, for a note.
pub(crate) fn comparison_in_full(compared: &Comparison) -> String {
    let verdict = comparison(compared, true);
    let rounds = count(u64::from(compared.rounds), "round");
    if compared.verdict == Verdict::NotJudged {
        return verdict;
    }
    if compared.verdict != Verdict::Undecided {
        return format!("{verdict} over {rounds}");
    }
    let more = match compared.rounds_to_show_one_percent {
        Some(0) => String::new(),
        Some(more) => {
            let more = count(u64::from(more), "more round");
            format!("; about {more} would show 1%")
        }
        None => "; 1% cannot be shown here".to_owned(),
    };
    format!("{verdict}, {} over {rounds}{more}", plain_ratio(compared))
}

/// Formats a ratio with its interval, not as a percentage: `1.002 (0.990 to 1.013)`.
pub(crate) fn plain_ratio(compared: &Comparison) -> String {
    let Comparison {
        ratio, low, high, ..
    } = compared;
    match (
        ratio.is_finite(),
        low.is_finite() && high.is_finite() && *low > 0.0,
    ) {
        (true, true) => {
            let decimals = ratio_decimals(*ratio);
            format!("{ratio:.decimals$} ({low:.decimals$} to {high:.decimals$})")
        }
        (true, false) => {
            format!("{} (too few rounds for an interval)", bare_ratio(*ratio))
        }
        (false, _) => "unknown".to_owned(),
    }
}

/// Formats an interval of ratios, such as `0.98 to 1.03`.
pub(crate) fn interval(compared: &Comparison) -> String {
    let [low, high] = [compared.low, compared.high].map(two_decimals);
    match compared.low > 0.0 && compared.high.is_finite() {
        true => format!("{low} to {high}"),
        false => "too few rounds for an interval".to_owned(),
    }
}

/// Formats a ratio for a table with many ratios: with two decimals, or with fewer if it is large.
pub(crate) fn two_decimals(ratio: f64) -> String {
    match ratio.abs() {
        large if large >= 1000.0 => short_number(ratio),
        large if large >= 99.95 => format!("{ratio:.0}"),
        large if large >= 9.995 => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Formats a ratio without its interval, such as `1.002` or `0.0523`.
pub(crate) fn bare_ratio(ratio: f64) -> String {
    let decimals = ratio_decimals(ratio);
    format!("{ratio:.decimals$}")
}

/// Returns the number of decimals with which a ratio has at least three significant digits: three,
/// or up to nine for ratios below 0.1.
fn ratio_decimals(ratio: f64) -> usize {
    let has_few = |decimals: &usize| ratio.abs() * 10_f64.powi(*decimals as i32) < 99.5;
    match ratio {
        0.0 => 3,
        _ => 3 + (3..9).take_while(has_few).count(),
    }
}

/// Formats a factor, such as `2.50x as much (2.40 to 2.60)`.
fn times([estimate, low, high]: [f64; 3], interval: bool) -> String {
    if estimate >= ABSURD_FACTOR {
        return format!("more than {ABSURD_FACTOR}x as much");
    }
    let largest = if interval { high } else { estimate };
    let reads_as_one = |decimals: usize| (low - 1.0).abs() < 0.5 / 10_f64.powi(decimals as i32);
    let decimals = match largest {
        _ if interval && reads_as_one(2) => 3,
        large if large >= 99.95 => 0,
        large if large >= 9.995 => 1,
        _ => 2,
    };
    let tail = if interval {
        format!(" ({low:.decimals$} to {high:.decimals$})")
    } else {
        String::new()
    };
    format!("{estimate:.decimals$}x as much{tail}")
}

/// Formats a percentage, such as `12% less (10 to 14)`. `parts` are fractions, and `ends` are the
/// percentages as which no part may read: no difference, and nothing left.
fn percent(parts: [f64; 3], word: &str, ends: &[f64], interval: bool) -> String {
    let [estimate, low, high] = parts.map(|part| part * 100.0);
    let shown = if interval {
        [estimate, low, high]
    } else {
        [estimate; 3]
    };
    let is_small = |part: &f64| part.abs() < 9.95;
    let usual = usize::from(shown.iter().any(is_small));
    let decimals = decimals(shown, ends, usual);
    let [estimate, low, high] = [estimate, low, high].map(|part| format!("{part:.decimals$}"));
    let is_exact = low == estimate && high == estimate;
    let tail = match interval && !is_exact {
        true => format!(" ({low} to {high})"),
        false => String::new(),
    };
    format!("{estimate}% {word}{tail}")
}

/// Returns the number of decimals of percentages: `usual`, or up to two more if any would otherwise
/// read as one of `ends`.
fn decimals(percentages: [f64; 3], ends: &[f64], usual: usize) -> usize {
    let distances = percentages
        .iter()
        .flat_map(|part| ends.iter().map(move |end| (part - end).abs()));
    let nearest = distances.fold(f64::INFINITY, f64::min);
    let visible = |decimals: &usize| nearest >= 0.5 / 10_f64.powi(*decimals as i32);
    (usual..usual + 2).find(visible).unwrap_or(usual + 2)
}

/// Factor from which, like its inverse, only a limit is printed.
const ABSURD_FACTOR: f64 = 1000.0;

/// Percentage from which only a lower limit is printed: a factor of ten.
const ABSURD_PERCENTAGE: f64 = 1000.0;

/// Names an interval that misses the truth with the probability `alpha`: `95% interval`.
pub(crate) fn interval_of(alpha: f64) -> String {
    match alpha > 0.0 && alpha < 1.0 {
        true => format!("{} interval", fraction(1.0 - alpha)),
        false => "interval".to_owned(),
    }
}

/// Formats a fraction as a percentage: `1.3%`.
pub(crate) fn fraction(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        size if !size.is_finite() => "an unknown amount".to_owned(),
        size if size >= ABSURD_PERCENTAGE => "more than a factor of ten".to_owned(),
        size if size >= 9.95 => format!("{percent:.0}%"),
        size if size >= 0.095 => format!("{percent:.1}%"),
        _ => format!("{percent:.2}%"),
    }
}

/// Formats the median of a series of seconds, such as `75.3 s`.
pub(crate) fn seconds(series: Option<&Series>) -> String {
    median(series, |value| Nanoseconds::from_seconds(value).to_string())
}

/// Formats the median of a series of bytes, such as `250 MiB`.
pub(crate) fn bytes(series: Option<&Series>) -> String {
    median(series, |value| Bytes(value.round() as u64).to_string())
}

/// Formats the median of a series of plain numbers, such as `1.24k`.
pub(crate) fn number(series: Option<&Series>) -> String {
    median(series, short_number)
}

/// Formats the median of a figure in the unit that the figure's name implies.
pub(crate) fn figure(name: &str, series: Option<&Series>) -> String {
    median(series, |value| amount(name, value))
}

/// Formats a value of a figure in the unit that the figure's name implies.
pub(crate) fn amount(name: &str, value: f64) -> String {
    match name {
        _ if !value.is_finite() => NONE.to_owned(),
        rate if rate.contains("_per_") => short_number(value),
        size if size.ends_with("_bytes") => Bytes(value.round() as u64).to_string(),
        time if time.ends_with("_ns") => Nanoseconds(value.round() as u64).to_string(),
        time if time.ends_with("_s") => Nanoseconds::from_seconds(value).to_string(),
        _ => short_number(value),
    }
}

/// Formats the median with `tell`. An unknown median is a dash.
fn median(series: Option<&Series>, tell: impl Fn(f64) -> String) -> String {
    entrant::median(series).map_or_else(|| NONE.to_owned(), tell)
}

/// Formats a number with about three significant digits, such as `1.24k` or `62.8M`.
pub(crate) fn short_number(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let size = value.abs();
    for (step, unit) in STEPS {
        if size >= step {
            return format!("{}{unit}", three_digits(value / step));
        }
    }
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        three_digits(value)
    }
}

/// Formats `value` with three significant digits, but with its whole part in full and at most nine
/// decimals.
pub(crate) fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 => format!("{value:.2}"),
        _ => bare_ratio(value),
    }
}

/// Formats a count, such as `1 round` or `3 rounds`. The plural of a word that ends in `s` ends in
/// `es`.
pub fn count(number: u64, word: &str) -> String {
    let ending = match (number, word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{} {word}{ending}", grouped(number))
}

/// Joins names in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the words that follow a metric's name: `lower is better` or `higher is better`.
pub(crate) fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}

#[cfg(test)]
mod tests;
