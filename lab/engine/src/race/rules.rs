//! Statistical rules for the figures of a race, and comparisons by these rules.

use heapdrome_schema::{Comparison, Plan, Replayed, Role, Verdict};
use heapdrome_statistics::{Estimate, Rule};

use super::figures::Compared;

/// Statistical rules of a race.
pub struct Rules {
    judged: Rule,
    other: Rule,
    names: Vec<String>,
}

impl Rules {
    /// Creates the rules. The judged figures of all rivals together share one probability of a
    /// false verdict. Each other figure has its own such probability, shared by the rivals.
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

    /// Returns the rule for the figure with this name.
    pub fn of(&self, figure: &str) -> &Rule {
        match self.names.iter().any(|name| name == figure) {
            true => &self.judged,
            false => &self.other,
        }
    }
}

/// Converts an estimate of a figure into a comparison for a result. The verdict is `NotJudged` if
/// the replay's speed supports no claim on the figure.
pub(super) fn comparison(
    rule: &Rule,
    figure: &Compared<'_>,
    estimate: &Estimate,
    replay: Option<&Replayed>,
) -> Comparison {
    let supported = replay.is_none_or(|replay| replay.supports(figure.name()));
    let fidelity = replay.and_then(|replay| replay.fidelity.as_ref());
    let misses = fidelity
        .iter()
        .flat_map(|known| known.misses_on(figure.name()));
    let more = rule
        .rounds_to_show(estimate, 0.01)
        .and_then(|more| u32::try_from(more).ok());
    Comparison {
        ratio: estimate.ratio,
        low: estimate.low,
        high: estimate.high,
        rounds: u32::try_from(estimate.rounds).unwrap_or(u32::MAX),
        verdict: match supported {
            true => figure.kind().verdict(estimate.shown()),
            false => Verdict::NotJudged,
        },
        rounds_to_show_one_percent: more.filter(|_| supported),
        misses: misses.map(|miss| miss.property).collect(),
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{CPU, Entrant, Options, Stopping, WALL};

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
            started_in: "/".into(),
            entrants: roles.map(entrant).to_vec(),
            seed: 1,
            options: Options {
                judged: judged.iter().map(|name| (*name).to_owned()).collect(),
                ..Options::default()
            },
            stopping: Stopping::default(),
            alpha: 0.05,
            ..Plan::default()
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
