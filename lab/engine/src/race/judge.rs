//! Conclusions from the data of a race: standings of the rivals, the noise floor, and the entrants
//! that the targets of a suite decide.

use std::collections::BTreeMap;

use heapdrome_schema::{NoiseFloor, RaceResult, Role};
use heapdrome_statistics::{Estimate, Range, Standing, typical};
use heapdrome_suites::{Decided, Race, Suite};

use super::figures::{Compared, WALL};
use super::material::Material;
use super::rules::{Rules, comparison};

/// Judge that decides, by the targets of a suite, which entrants of a race stop.
#[derive(Clone, Debug)]
pub struct Judge {
    /// Suite whose targets decide.
    pub suite: Suite,
    /// Race of the suite that is judged.
    pub race: Race,
}

impl Judge {
    /// Returns the entrants that are decided at this point of the race.
    pub(super) fn decided(&self, result: RaceResult) -> Decided {
        self.suite.decided(&self.race.member(result, Vec::new()))
    }
}

/// Returns the intervals on the judged figures of all entrants still racing, including the twin and
/// excluding the baseline. `None` stands for an estimate from too few rounds.
pub fn judged_estimates(material: &Material<'_>, rules: &Rules) -> Vec<Option<Estimate>> {
    let judged = Compared::judged(&material.plan.options);
    let racing = material.beside_the_baseline();
    let racing = racing.filter(|e| !material.decided.contains_key(e));
    racing
        .flat_map(|e| judged.iter().map(move |figure| (e, figure)))
        .map(|(e, figure)| material.estimate(rules, e, figure))
        .collect()
}

/// Returns the standings of the rivals with valid rows, by position in the plan. A standing covers
/// the judged figures.
pub fn standings(material: &Material<'_>, rules: &Rules) -> BTreeMap<usize, Standing> {
    let judged = Compared::judged(&material.plan.options);
    let standing = |e: usize| {
        let range = |figure: &Compared<'_>| {
            let estimate = material.estimate(rules, e, figure)?;
            Some(Range::of(&estimate, figure.more_is_better()))
        };
        (e, judged.iter().map(range).collect())
    };
    let rival = |e: &usize| material.plan.entrants[*e].role == Role::Rival;
    let rivals = material.beside_the_baseline().filter(rival);
    rivals.map(standing).collect()
}

/// Returns the noise floor: the twin's ratio to the baseline, and the smallest differences that the
/// race could show. Returns `None` without a twin, or with too few rounds.
pub fn noise_floor(material: &Material<'_>, rules: &Rules) -> Option<NoiseFloor> {
    let twin = material
        .plan
        .entrants
        .iter()
        .position(|entrant| entrant.role == Role::Twin)?;
    let wall = Compared::Common(WALL);
    let estimate = material.estimate(rules, twin, &wall)?;
    let judged = Compared::judged(&material.plan.options);
    let replay = material.plan.options.replay.as_ref();
    let known = |figure: &Compared<'_>| {
        let supported = replay.is_none_or(|replay| replay.supports(figure.name()));
        let smallest = smallest_difference(material, rules, figure)?;
        supported.then(|| (figure.name().to_owned(), smallest))
    };
    Some(NoiseFloor {
        baseline_again: comparison(rules.of(WALL.name), &wall, &estimate, replay),
        smallest_difference: smallest_difference(material, rules, &wall).unwrap_or(f64::NAN),
        smallest_by_figure: judged.iter().filter_map(known).collect(),
    })
}

/// Returns the smallest difference in a figure, as a fraction, that the race had an 80% chance to
/// show; `None` with too few rounds.
fn smallest_difference(
    material: &Material<'_>,
    rules: &Rules,
    figure: &Compared<'_>,
) -> Option<f64> {
    // The estimate of a single entrant's noise is too uncertain. All entrants share the machine's
    // noise, so the estimates of all are used.
    let beside = material.beside_the_baseline();
    let known: Vec<_> = beside
        .filter_map(|e| material.estimate(rules, e, figure))
        .collect();
    let smallest = rules
        .of(figure.name())
        .smallest_difference(&typical(&known)?);
    smallest.is_finite().then_some(smallest)
}
