//! What was counted, as Markdown and as JSON.

use heapdrome_statistics::upper_bound;
use serde_json::{Value, json};

/// Confidence of every bound that is printed.
const CONFIDENCE: f64 = 0.95;

/// Events among trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How often it happened.
    pub count: u64,
    /// How often it could have.
    pub of: u64,
}

impl Rate {
    /// The share, zero without trials.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.count as f64 / self.of as f64
        }
    }

    /// The exact upper 95% bound on the probability.
    pub fn bound(self) -> f64 {
        upper_bound(self.count, self.of, CONFIDENCE)
    }

    /// Such as `1.23% (at most 1.45%)`.
    pub fn text(self) -> String {
        format!(
            "{:.2}% (at most {:.2}%)",
            100.0 * self.share(),
            100.0 * self.bound()
        )
    }

    fn json(self) -> Value {
        let (share, bound) = (self.share(), self.bound());
        json!({ "count": self.count, "of": self.of, "share": share, "upper_95": bound })
    }
}

/// False verdicts in one condition.
#[derive(Clone, Debug)]
pub struct FalseVerdicts {
    /// The condition's name.
    pub condition: String,
    /// Rivals in each race.
    pub rivals: usize,
    /// Median rounds of a race.
    pub median_rounds: f64,
    /// Races that stopped because they were precise.
    pub precise: Rate,
    /// Races that ended with a false verdict.
    pub at_the_end: Rate,
    /// Races with one at any round.
    pub at_any_look: Rate,
    /// The same by the usual way.
    pub usual: Rate,
}

/// False verdicts of comparisons of two races.
#[derive(Clone, Debug)]
pub struct TwoRaces {
    /// The condition's name.
    pub condition: String,
    /// Rivals in each race.
    pub rivals: usize,
    /// How much slower the machine was in the second race, as a fraction.
    pub slower: f64,
    /// Comparisons in which a rival's own time seemed changed.
    pub itself: Rate,
    /// Comparisons in which its ratio to the baseline did.
    pub beside: Rate,
    /// Comparisons in which both did.
    pub both: Rate,
}

/// The power at the announced difference.
#[derive(Clone, Debug)]
pub struct Power {
    /// The condition's name.
    pub condition: String,
    /// Rivals in each race.
    pub rivals: usize,
    /// Rounds of each race.
    pub rounds: usize,
    /// The median of the announced differences.
    pub announced: f64,
    /// Races that showed it.
    pub shown: Rate,
}

/// Rounds after which a difference was shown.
#[derive(Clone, Debug)]
pub struct Needed {
    /// The condition's name.
    pub condition: String,
    /// Rivals in each race.
    pub rivals: usize,
    /// The difference, as a fraction.
    pub difference: f64,
    /// Rounds after which half of the races had shown it, where they did.
    pub half: Option<usize>,
    /// Rounds after which 80% of the races had.
    pub most: Option<usize>,
}

/// Everything that was counted.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// False verdicts.
    pub false_verdicts: Vec<FalseVerdicts>,
    /// Comparisons of two races.
    pub two_races: Vec<TwoRaces>,
    /// Power.
    pub power: Vec<Power>,
    /// Rounds needed.
    pub needed: Vec<Needed>,
}

impl Tables {
    /// Four Markdown tables.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| condition | rivals | races | stopped as precise | median rounds | false verdicts at \
             the end | at any look | the usual way |\n|---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.false_verdicts {
            text += &format!(
                "| {} | {} | {} | {:.0}% | {} | {} | {} | {} |\n",
                row.condition,
                row.rivals,
                row.at_the_end.of,
                100.0 * row.precise.share(),
                row.median_rounds,
                row.at_the_end.text(),
                row.at_any_look.text(),
                row.usual.text(),
            );
        }
        text += "\n| condition | rivals | second race | itself | beside the baseline | both |\n";
        text += "|---|---|---|---|---|---|\n";
        for row in &self.two_races {
            text += &format!(
                "| {} | {} | {:.0}% slower | {} | {} | {} |\n",
                row.condition,
                row.rivals,
                100.0 * row.slower,
                row.itself.text(),
                row.beside.text(),
                row.both.text(),
            );
        }
        text += "\n| condition | rivals | rounds | announced (median) | shown |\n";
        text += "|---|---|---|---|---|\n";
        for row in &self.power {
            text += &format!(
                "| {} | {} | {} | {:.2}% | {:.1}% |\n",
                row.condition,
                row.rivals,
                row.rounds,
                100.0 * row.announced,
                100.0 * row.shown.share(),
            );
        }
        text += "\n| condition | rivals | difference | rounds, half of the races | rounds, 80% |\n";
        text += "|---|---|---|---|---|\n";
        for row in &self.needed {
            let rounds = |rounds: Option<usize>| {
                rounds.map_or_else(|| "more than tried".to_owned(), |rounds| rounds.to_string())
            };
            text += &format!(
                "| {} | {} | {:.0}% | {} | {} |\n",
                row.condition,
                row.rivals,
                100.0 * row.difference,
                rounds(row.half),
                rounds(row.most),
            );
        }
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let false_verdicts = self.false_verdicts.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals,
                "median_rounds": row.median_rounds, "stopped_as_precise": row.precise.json(),
                "false_at_the_end": row.at_the_end.json(),
                "false_at_any_look": row.at_any_look.json(), "usual_way": row.usual.json(),
            })
        });
        let two_races = self.two_races.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals, "slower": row.slower,
                "itself": row.itself.json(), "beside_baseline": row.beside.json(),
                "both": row.both.json(),
            })
        });
        let power = self.power.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals, "rounds": row.rounds,
                "announced_median": row.announced, "shown": row.shown.json(),
            })
        });
        let needed = self.needed.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals, "difference": row.difference,
                "rounds_half": row.half, "rounds_80": row.most,
            })
        });
        json!({
            "false_verdicts": false_verdicts.collect::<Vec<_>>(),
            "two_races": two_races.collect::<Vec<_>>(),
            "power": power.collect::<Vec<_>>(), "rounds_needed": needed.collect::<Vec<_>>(),
        })
    }
}
