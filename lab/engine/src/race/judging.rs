//! What the judged figures say: the level that they share, how the rivals stand, what could be shown.

use std::collections::BTreeMap;

use heapdrome_record::{NoiseFloor, Plan, Role};
use heapdrome_statistics::{Estimate, Range, Rule, Standing, typical};

use super::assembling::{Material, comparison};
use super::figures::{Compared, WALL};

/// The rules of a race.
pub struct Rules {
    judged: Rule,
    other: Rule,
    names: Vec<String>,
}

impl Rules {
    /// The probability of a false verdict is shared among the rivals and the judged figures. Every
    /// other figure has a probability of its own, shared among the rivals.
    pub fn new(plan: &Plan) -> Self {
        let rivals = plan.entrants.iter().filter(|one| one.role == Role::Rival);
        let rivals = rivals.count();
        let names = plan.options.judged.clone();
        Self {
            judged: Rule::new(plan.alpha, rivals * names.len().max(1)),
            other: Rule::new(plan.alpha, rivals),
            names,
        }
    }

    /// The rule of the figure of this name.
    pub fn of(&self, figure: &str) -> &Rule {
        match self.names.iter().any(|name| name == figure) {
            true => &self.judged,
            false => &self.other,
        }
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

#[cfg(test)]
mod tests {
    use heapdrome_record::{CPU, Entrant, Options, Stopping, WALL};

    use super::*;

    fn plan(judged: &[&str]) -> Plan {
        let entrant = |role: Role| Entrant {
            name: format!("{role:?}"),
            role,
            ..Entrant::default()
        };
        let roles = [
            Role::Baseline,
            Role::Twin,
            Role::Rival,
            Role::Rival,
            Role::Rival,
        ];
        Plan {
            command: Vec::new(),
            asked: Vec::new(),
            started_in: "/".into(),
            part: None,
            started: String::new(),
            notes: Vec::new(),
            entrants: roles.map(entrant).to_vec(),
            seed: 1,
            options: Options {
                judged: judged.iter().map(|name| (*name).to_owned()).collect(),
                ..Options::default()
            },
            stopping: Stopping::default(),
            alpha: 0.05,
        }
    }

    #[test]
    fn judged_figures_share_the_level_and_others_have_one_of_their_own() {
        let both = Rules::new(&plan(&[WALL, CPU]));
        let shared = [WALL, CPU, "minor_faults"].map(|name| both.of(name).comparisons());
        assert_eq!(shared, [6, 6, 3]);
        let wall = Rules::new(&plan(&[WALL]));
        assert_eq!([WALL, CPU].map(|name| wall.of(name).comparisons()), [3, 3]);
    }
}
