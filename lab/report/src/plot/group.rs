//! Groups of a collection's races that form curves, and the position of each race on them.

use heapdrome_schema::{Collection, Member, ScalingCurve, SweepResult};

use super::stem_within;
use crate::foreign;
use crate::scaling;

/// Maximum length of the part of a drawing's name that is derived from its group.
const LONGEST_STEM: usize = 100;

/// Races of a collection that differ in only one parameter.
pub(crate) struct Group<'a> {
    /// Name that identifies the group, such as the name of a cell.
    pub(crate) name: String,
    /// Stem of the names of the group's drawings, unique in the collection.
    pub(super) stem: String,
    /// The parameter that differs.
    pub(crate) parameter: String,
    /// Values of the other parameters; empty if there are none.
    pub(crate) others: String,
    /// At least two races, from left to right.
    pub(crate) races: Vec<At<'a>>,
    /// Curves of the degradation, one for each allocator; empty for races without a recorded sweep.
    pub(super) curves: Vec<&'a ScalingCurve>,
    /// Whether all values are numbers above 0, which a logarithmic axis requires.
    pub(crate) by_logarithm: bool,
}

/// A race, and its position on the axis.
pub(crate) struct At<'a> {
    pub(super) place: f64,
    pub(crate) label: String,
    pub(crate) member: &'a Member,
}

/// Returns the groups of races that sweep a parameter.
pub(crate) fn groups(collection: &Collection) -> Vec<Group<'_>> {
    let mut groups = match collection.sweep() {
        Some(sweep) => of_sweep(collection, sweep),
        None => of_cells(collection),
    };
    groups.retain(|group| group.races.len() >= 2);
    name_apart(&mut groups);
    groups
}

/// Derives each group's stem from its name. Adds a number if an earlier group has the stem.
fn name_apart(groups: &mut [Group<'_>]) {
    let mut taken: Vec<String> = Vec::new();
    for group in groups {
        let own = stem_within(&group.name, LONGEST_STEM);
        let numbered = (2_u32..).map(|number| format!("{own}-{number}"));
        let mut names = std::iter::once(own.clone()).chain(numbered);
        group.stem = names.find(|name| !taken.contains(name)).unwrap_or(own);
        taken.push(group.stem.clone());
    }
}

/// Returns one group for each combination of values of the parameters that the curves do not
/// follow.
fn of_sweep<'a>(collection: &'a Collection, sweep: &'a SweepResult) -> Vec<Group<'a>> {
    let of_others = |others: String| {
        let curves: Vec<_> = sweep
            .curves
            .iter()
            .filter(|curve| curve.others == others)
            .collect();
        let (races, by_logarithm) = races_along(collection, &curves);
        let workload = races
            .first()
            .map_or("", |race| race.member.workload.as_str());
        let name = match others.as_str() {
            "" => format!("{workload}, {}", collection.name),
            others => format!("{others}, {workload} over {}", sweep.along),
        };
        Group {
            name: foreign::line(&name),
            stem: String::new(),
            parameter: foreign::line(&sweep.along),
            others: foreign::line(&others),
            races,
            curves,
            by_logarithm,
        }
    };
    scaling::others(sweep).into_iter().map(of_others).collect()
}

/// Returns the races of the longest curve from left to right, and whether all values are numbers
/// above 0.
fn races_along<'a>(collection: &'a Collection, curves: &[&'a ScalingCurve]) -> (Vec<At<'a>>, bool) {
    let points = curves.iter().map(|curve| &curve.points);
    let points = points.max_by_key(|points| points.len());
    let numbers: Vec<Option<f64>> = points
        .into_iter()
        .flatten()
        .map(|point| point.value.parse().ok().filter(|number| *number > 0.0))
        .collect();
    let by_logarithm = numbers.iter().all(Option::is_some);
    let found = points.into_iter().flatten().zip(&numbers).enumerate();
    let mut races: Vec<_> = found
        .filter_map(|(number, (point, value))| {
            let mut members = collection.races.iter();
            Some(At {
                place: value.filter(|_| by_logarithm).unwrap_or(number as f64),
                label: foreign::line(&point.value),
                member: members.find(|member| member.cell == point.cell)?,
            })
        })
        .collect();
    races.sort_by(|a, b| a.place.total_cmp(&b.place));
    (races, by_logarithm)
}

/// Returns one group for each cell of a suite, or for each workload of another collection. Omits
/// races without a swept value.
fn of_cells(collection: &Collection) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for member in &collection.races {
        let Some(value) = member.swept else { continue };
        let name = match collection.scale() {
            Some(_) => foreign::line(&member.cell),
            None => foreign::line(&format!("{}, {}", member.workload, collection.name)),
        };
        let race = At {
            place: value as f64,
            label: value.to_string(),
            member,
        };
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.races.push(race),
            None => groups.push(Group {
                name,
                stem: String::new(),
                parameter: String::new(),
                others: String::new(),
                races: vec![race],
                curves: Vec::new(),
                by_logarithm: true,
            }),
        }
    }
    for group in &mut groups {
        group.parameter = swept(&group.races);
        group.races.sort_by(|a, b| a.place.total_cmp(&b.place));
        group.races.dedup_by_key(|race| race.label.clone());
        group.by_logarithm = group.races.iter().all(|race| race.place > 0.0);
    }
    groups
}

/// Returns the name of the parameter whose value equals the swept value in every race. Other
/// parameters may match in some races by chance. If several match in all races, returns the last,
/// because sweeps append their parameter. If none matches, returns `threads`.
fn swept(races: &[At<'_>]) -> String {
    let is_swept = |name: &&str| {
        races.iter().all(|race| {
            let word = race.member.swept.map(|value| format!("{name}={value}"));
            word.is_some_and(|word| race.member.parameters.contains(&word))
        })
    };
    let words = races
        .first()
        .map(|race| race.member.parameters.iter().rev());
    let mut names = words
        .into_iter()
        .flatten()
        .filter_map(|word| word.split_once('='))
        .map(|(name, _)| name);
    foreign::name(names.find(is_swept).unwrap_or("threads"))
}
