//! The common verdict of a sweep's races: the fastest allocator at each value, the changes of the
//! lead, and the undecided values. Only intervals determine this verdict.

use heapdrome_schema::{Collection, Comparison, Member, RaceResult, Role, Status, WALL};

use crate::entrant::versus;
use crate::foreign;
use crate::plot::{Group, groups};
use crate::sheet::{Row, Sheet};
use crate::words::{self, listed};

/// Maximum number of changes of the lead that are listed. If there are more, they are only counted.
const MOST_CHANGES: usize = 3;

/// The leaders at one value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ahead {
    /// All other entrants were shown to be slower.
    Alone(String),
    /// None of these was shown to be slower than another of them. All other entrants were shown to
    /// be slower.
    Together(Vec<String>),
    /// No rival has an interval.
    Unknown,
}

/// A value of the parameter, and the leaders of its race.
struct Value<'a> {
    label: String,
    result: &'a RaceResult,
    ahead: Ahead,
}

/// Summarises the findings of a sweep on time, in a few sentences.
pub(crate) fn verdict(collection: &Collection) -> String {
    if collection.races.is_empty() {
        return "No race is complete, so there is no verdict.".to_owned();
    }
    let groups = groups(collection);
    let mut sentences = Vec::new();
    let mut all = Vec::new();
    for group in &groups {
        let values = of_group(group);
        if !group.others.is_empty() {
            sentences.push(format!("With {}:", group.others));
        }
        sentences.extend(told(&values, &group.parameter, group.by_logarithm));
        all.extend(values);
    }
    if groups.is_empty() {
        let value = |race: &'_ Member| foreign::line(&race.cell);
        let races = collection.races.iter();
        all.extend(races.map(|race| Value::of(value(race), &race.result)));
        sentences.extend(told(&all, "", false));
    }
    sentences.extend(not_counted(&all));
    sentences.extend(risk(&all));
    sentences.join(" ")
}

fn of_group<'a>(group: &Group<'a>) -> Vec<Value<'a>> {
    let races = group.races.iter();
    races
        .map(|race| Value::of(race.label.clone(), &race.member.result))
        .collect()
}

impl<'a> Value<'a> {
    fn of(label: String, result: &'a RaceResult) -> Self {
        Self {
            label,
            result,
            ahead: ahead(result),
        }
    }
}

/// Returns the entrants that were not shown to be slower than another one: no other interval lies
/// wholly below theirs. The baseline's interval is exactly 1.
fn ahead(result: &RaceResult) -> Ahead {
    let sheet = Sheet::new(result);
    let ends = |row: &Row<'_>| match row.entrant.role {
        Role::Baseline => Some([1.0, 1.0]),
        _ => versus(row.entrant, WALL).and_then(interval),
    };
    let rows: Vec<_> = sheet
        .rows
        .iter()
        .map(|row| (foreign::name(&row.entrant.allocator), ends(row)))
        .collect();
    let is_rival = |row: &Row<'_>| row.entrant.role == Role::Rival;
    let compared = sheet.rows.iter().zip(&rows);
    let mut compared = compared.filter(|(row, (_, ends))| is_rival(row) && ends.is_some());
    if compared.next().is_none() {
        return Ahead::Unknown;
    }
    let known = rows.iter().filter_map(|(_, ends)| *ends);
    let limit = known.map(|[_, high]| high).fold(f64::INFINITY, f64::min);
    // An entrant without an interval was not shown to be slower, so it is among the leaders.
    let ahead = rows
        .into_iter()
        .filter(|(_, ends)| ends.is_none_or(|[low, _]| low <= limit));
    let mut names: Vec<String> = ahead.map(|(name, _)| name).collect();
    // Sort by the order of the request, so that the same leaders have the same order at all values.
    let asked = |name: &String| {
        let mut entrants = result.entrants.iter();
        entrants.position(|entrant| foreign::name(&entrant.allocator) == *name)
    };
    names.sort_by_key(asked);
    match names.len() {
        1 => Ahead::Alone(names.swap_remove(0)),
        _ => Ahead::Together(names),
    }
}

fn interval(compared: &Comparison) -> Option<[f64; 2]> {
    let ends = [compared.low, compared.high];
    let known = ends.iter().all(|end| end.is_finite() && *end > 0.0);
    known.then_some(ends)
}

/// Returns the sentences on the values of one parameter. Includes the changes of the lead if the
/// values are `rising` numbers.
fn told(values: &[Value<'_>], parameter: &str, rising: bool) -> Vec<String> {
    let leaders = leaders(values);
    let mut sentences = vec![who_leads(&leaders, values, parameter)];
    sentences.extend(leaders.first().and_then(|(name, _)| lead(name, values)));
    if rising {
        sentences.extend(changes(values));
    }
    sentences.extend(undecided(values));
    sentences
}

/// Returns each sole leader with the values at which it leads, the most frequent leader first.
fn leaders(values: &[Value<'_>]) -> Vec<(String, Vec<String>)> {
    let mut leaders: Vec<(String, Vec<String>)> = Vec::new();
    for value in values {
        let Ahead::Alone(name) = &value.ahead else {
            continue;
        };
        match leaders.iter_mut().find(|(own, _)| own == name) {
            Some((_, labels)) => labels.push(value.label.clone()),
            None => leaders.push((name.clone(), vec![value.label.clone()])),
        }
    }
    leaders.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
    leaders
}

/// Formats a count of values, such as `4 values of threads`.
fn counted(count: usize, parameter: &str) -> String {
    match parameter {
        "" => words::count(count as u64, "race"),
        name => format!("{} of {name}", words::count(count as u64, "value")),
    }
}

fn who_leads(leaders: &[(String, Vec<String>)], values: &[Value<'_>], parameter: &str) -> String {
    let all = counted(values.len(), parameter);
    match leaders {
        [] if values.iter().all(|value| value.ahead == Ahead::Unknown) => {
            format!("No verdict on {all}: {}.", why_unknown(values))
        }
        [] => format!("At none of {all} was one allocator alone shown to be the fastest."),
        [(name, own)] if own.len() == values.len() => {
            format!("{name} is the fastest at all {all} ({}).", listed(own))
        }
        leaders => {
            let each = leaders.iter().enumerate();
            let each: Vec<String> = each
                .map(|(place, (name, own))| {
                    let count = own.len();
                    match place {
                        0 => format!(
                            "{name} is the fastest at {count} of {all} ({})",
                            listed(own)
                        ),
                        _ => format!("{name} at {count} ({})", listed(own)),
                    }
                })
                .collect();
            format!("{}.", each.join("; "))
        }
    }
}

/// Explains why no rival has an interval at any value. More rounds help only entrants with valid
/// rows.
fn why_unknown(values: &[Value<'_>]) -> String {
    let counts = |value: &Value<'_>| Sheet::new(value.result).rivals().next().is_some();
    if values.iter().any(counts) {
        return "no rival has an interval (run five rounds or more)".to_owned();
    }
    let reasons = values
        .iter()
        .map(|value| (value.result.rounds, &value.result.ended));
    let mut reasons = reasons.map(|(rounds, ended)| (rounds == 0).then(|| foreign::line(ended)));
    let first = reasons.next().flatten().filter(|reason| !reason.is_empty());
    let shared = first.filter(|first| reasons.all(|reason| reason.as_ref() == Some(first)));
    shared.unwrap_or_else(|| "no rival counts".to_owned())
}

/// Formats the minimum and the maximum of a rival's lead over the baseline, at the values at which
/// it leads alone.
fn lead(name: &str, values: &[Value<'_>]) -> Option<String> {
    let leads = |value: &&Value<'_>| value.ahead == Ahead::Alone(name.to_owned());
    let compared = values.iter().filter(leads).filter_map(|value| {
        let mut rows = value.result.entrants.iter();
        let own = rows.find(|row| foreign::name(&row.allocator) == name)?;
        Some((&value.label, versus(own, WALL)?))
    });
    let mut compared: Vec<(&String, &Comparison)> = compared.collect();
    compared.sort_by(|one, other| other.1.ratio.total_cmp(&one.1.ratio));
    let baseline = foreign::name(&values.first()?.result.baseline);
    let told = |(label, compared): &(&String, &Comparison)| {
        format!("{} at {label}", words::comparison(compared, true))
    };
    match compared.as_slice() {
        [] => None,
        [one] => Some(format!(
            "Compared with {baseline}, the wall time of {name} is {}.",
            told(one)
        )),
        [least, .., most] => Some(format!(
            "Compared with {baseline}, the wall time of {name} is between {} and {}.",
            told(least),
            told(most)
        )),
    }
}

/// Lists the changes of the lead from one sole leader to another, or counts them if there are more
/// than [`MOST_CHANGES`].
fn changes(values: &[Value<'_>]) -> Option<String> {
    let alone = values.iter().filter_map(|value| match &value.ahead {
        Ahead::Alone(name) => Some((name, &value.label)),
        _ => None,
    });
    let alone: Vec<(&String, &String)> = alone.collect();
    let pairs = alone.windows(2).filter(|pair| pair[0].0 != pair[1].0);
    let changes: Vec<String> = pairs
        .map(|pair| {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            format!("from {from} to {to} between {before} and {after}")
        })
        .collect();
    match changes.len() {
        0 => None,
        1..=MOST_CHANGES => Some(format!("The lead passes {}.", listed(&changes))),
        many => Some(format!("The lead changes {many} times.")),
    }
}

/// Lists the undecided values: those with several leaders, and those without an interval.
fn undecided(values: &[Value<'_>]) -> Vec<String> {
    let mut open: Vec<(&Ahead, Vec<String>)> = Vec::new();
    for value in values {
        match open.iter_mut().find(|(ahead, _)| **ahead == value.ahead) {
            Some((_, labels)) => labels.push(value.label.clone()),
            None => open.push((&value.ahead, vec![value.label.clone()])),
        }
    }
    let everywhere = |labels: &[String]| labels.len() == values.len();
    let sentence = |(ahead, labels): (&Ahead, Vec<String>)| match ahead {
        Ahead::Alone(_) => None,
        Ahead::Unknown if everywhere(&labels) => None,
        Ahead::Unknown => Some(format!(
            "At {} there is no verdict: no rival has an interval.",
            listed(&labels)
        )),
        Ahead::Together(names) => Some(format!(
            "At {} the fastest is undecided: {}.",
            listed(&labels),
            alternatives(names)
        )),
    };
    open.into_iter().filter_map(sentence).collect()
}

/// Joins names: `a, b or c`.
fn alternatives(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => listed(names),
    }
}

/// Lists the entrants that raced at some value but have no valid row there.
fn not_counted(values: &[Value<'_>]) -> Option<String> {
    let mut out: Vec<String> = Vec::new();
    for value in values {
        let rows = value.result.entrants.iter();
        for row in rows.filter(|row| row.status != Status::Ok && row.role != Role::Twin) {
            let name = foreign::name(&row.allocator);
            if !out.contains(&name) {
                out.push(name);
            }
        }
    }
    let verb = if out.len() == 1 { "does" } else { "do" };
    (!out.is_empty()).then(|| {
        format!(
            "{} {verb} not count everywhere: see each race.",
            listed(&out)
        )
    })
}

/// Formats the largest probability of a false verdict at any value; `None` if it is unknown.
fn risk(values: &[Value<'_>]) -> Option<String> {
    let known = values.iter().filter(|value| value.ahead != Ahead::Unknown);
    let alphas = known.map(|value| value.result.alpha);
    let alpha = alphas.filter(|alpha| alpha.is_finite()).reduce(f64::max)?;
    Some(format!(
        "Each value is judged by the intervals of wall time in its own race, with at most {} risk of a false verdict.",
        words::fraction(alpha)
    ))
}
