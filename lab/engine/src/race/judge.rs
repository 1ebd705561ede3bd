//! What the judged figures say: how the rivals stand, what could be shown, what a suite's targets
//! leave open.

use std::collections::BTreeMap;

use heapdrome_schema::{NoiseFloor, RaceResult, Role};
use heapdrome_statistics::{Estimate, Range, Standing, typical};
use heapdrome_suites::{Decided, Race, Suite};

use super::figures::{Compared, WALL};
use super::material::Material;
use super::rules::{Rules, comparison};

/// The targets of a suite on one of its races.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The suite.
    pub suite: Suite,
    /// The race.
    pub race: Race,
}

impl Judge {
    /// Who is decided, as the race stands.
    pub(super) fn decided(&self, result: RaceResult) -> Decided {
        self.suite.decided(&self.race.member(result, Vec::new()))
    }
}

/// The intervals on the judged figures of everyone who still races beside the baseline, its twin
/// included; `None` where there are too few rounds yet.
pub fn judged_estimates(material: &Material<'_>, rules: &Rules) -> Vec<Option<Estimate>> {
    let judged = Compared::judged(&material.plan.options);
    let racing = material.beside_the_baseline();
    let racing = racing.filter(|e| !material.decided.contains_key(e));
    racing
        .flat_map(|e| judged.iter().map(move |figure| (e, figure)))
        .map(|(e, figure)| material.estimate(rules, e, figure))
        .collect()
}

/// How the rivals whose rows count stand on the judged figures, by their places in the plan.
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

/// What the baseline's twin shows.
pub fn noise_floor(material: &Material<'_>, rules: &Rules) -> Option<NoiseFloor> {
    let twin = material
        .plan
        .entrants
        .iter()
        .position(|entrant| entrant.role == Role::Twin)?;
    let wall = Compared::Common(WALL);
    let estimate = material.estimate(rules, twin, &wall)?;
    let judged = Compared::judged(&material.plan.options);
    let known = |figure: &Compared<'_>| {
        let smallest = smallest_difference(material, rules, figure)?;
        Some((figure.name().to_owned(), smallest))
    };
    Some(NoiseFloor {
        baseline_again: comparison(rules.of(WALL.name), WALL.kind, &estimate),
        smallest_difference: smallest_difference(material, rules, &wall).unwrap_or(f64::NAN),
        smallest_by_figure: judged.iter().filter_map(known).collect(),
    })
}

/// The smallest difference in a figure that the race had an 80% chance to show, as a fraction.
fn smallest_difference(
    material: &Material<'_>,
    rules: &Rules,
    figure: &Compared<'_>,
) -> Option<f64> {
    // One estimate's own noise is too uncertain; all entrants share the machine's.
    let beside = material.beside_the_baseline();
    let known: Vec<_> = beside
        .filter_map(|e| material.estimate(rules, e, figure))
        .collect();
    let smallest = rules
        .of(figure.name())
        .smallest_difference(&typical(&known)?);
    smallest.is_finite().then_some(smallest)
}
