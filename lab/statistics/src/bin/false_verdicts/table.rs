//! The counted events as Markdown and as JSON.

use heapdrome_statistics::upper_bound;
use serde_json::{Value, json};

/// Confidence level of every printed bound.
const CONFIDENCE: f64 = 0.95;

/// Rate of an event, counted in trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of trials in which the event happened.
    pub count: u64,
    /// Number of all trials.
    pub of: u64,
}

impl Rate {
    /// Returns the share of trials with an event; zero without trials.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.count as f64 / self.of as f64
        }
    }

    /// Returns the exact upper bound on the probability of the event, at the confidence level
    /// `CONFIDENCE`.
    pub fn bound(self) -> f64 {
        upper_bound(self.count, self.of, CONFIDENCE)
    }

    /// Formats the rate, such as `1.23% (at most 1.45%)`.
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

/// False verdicts under one condition.
#[derive(Clone, Debug)]
pub struct FalseVerdicts {
    /// The condition's name.
    pub condition: String,
    /// Number of rivals in each race.
    pub rivals: usize,
    /// Number of rounds of each race.
    pub rounds: usize,
    /// Races with a false verdict on a rival after any round.
    pub at_any_look: Rate,
    /// Races with a false verdict on a rival after the last round.
    pub at_the_end: Rate,
    /// Races with a false verdict on the twin after any round.
    pub twin: Rate,
    /// Races in which Student's interval alone gave a false verdict after any round.
    pub student: Rate,
    /// Races in which Welch's test of the rule's own runs gave a false verdict.
    pub welch: Rate,
    /// Races in which Welch's test gave a false verdict if all runs of one entrant precede those of
    /// the next.
    pub in_sequence: Rate,
}

/// False verdicts in comparisons of two races.
#[derive(Clone, Debug)]
pub struct TwoRaces {
    /// The condition's name.
    pub condition: String,
    /// Number of rivals in each race.
    pub rivals: usize,
    /// Fraction by which the machine was slower in the second race.
    pub slower: f64,
    /// Comparisons that showed a change of a rival's own time.
    pub itself: Rate,
    /// Comparisons that showed a change of a rival's ratio to the baseline.
    pub beside: Rate,
    /// Comparisons that showed, for one rival, changes of its own time and of its ratio to the
    /// baseline in the same direction.
    pub both: Rate,
}

/// Statistical power: the probability that a race shows a difference as large as the smallest one
/// that it claims to detect.
#[derive(Clone, Debug)]
pub struct Power {
    /// The condition's name.
    pub condition: String,
    /// Number of rivals in each race.
    pub rivals: usize,
    /// Number of rounds of each race.
    pub rounds: usize,
    /// Median of the announced differences, as fractions.
    pub announced: f64,
    /// Races that showed the difference by the rule.
    pub rule: Rate,
    /// Races in which Student's interval alone showed the difference.
    pub student: Rate,
    /// Races in which Welch's test of the rule's own runs showed the difference.
    pub welch: Rate,
    /// Races in which Welch's test showed the difference if all runs of one entrant precede those
    /// of the next.
    pub in_sequence: Rate,
}

/// Numbers of rounds that races needed to show a difference.
#[derive(Clone, Debug)]
pub struct Needed {
    /// The condition's name.
    pub condition: String,
    /// Number of rivals in each race.
    pub rivals: usize,
    /// Slowdown of one rival, as a fraction.
    pub difference: f64,
    /// Rounds after which the rule had shown the difference in 50% and in 80% of the races; `None`
    /// if this took more than the maximum number of rounds.
    pub rule: [Option<usize>; 2],
    /// Rounds after which the rule had shown the difference in 50% and in 80% of the races, if two
    /// figures are judged.
    pub two_figures: [Option<usize>; 2],
    /// Rounds after which Student's interval alone had shown the difference in 50% and in 80% of
    /// the races.
    pub student: [Option<usize>; 2],
}

/// Rows of the four tables.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// False verdicts in races of equal entrants.
    pub false_verdicts: Vec<FalseVerdicts>,
    /// False verdicts in comparisons of two races.
    pub two_races: Vec<TwoRaces>,
    /// Power at the announced difference.
    pub power: Vec<Power>,
    /// Rounds needed to show a difference.
    pub needed: Vec<Needed>,
}

impl Tables {
    /// Moves the rows of another set of tables into this one.
    pub fn append(&mut self, other: &mut Self) {
        self.false_verdicts.append(&mut other.false_verdicts);
        self.two_races.append(&mut other.two_races);
        self.power.append(&mut other.power);
        self.needed.append(&mut other.needed);
    }

    /// Formats the tables that have rows as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (heads, rows) in [
            (
                FALSE_VERDICTS,
                self.false_verdicts
                    .iter()
                    .map(FalseVerdicts::cells)
                    .collect(),
            ),
            (
                TWO_RACES,
                self.two_races.iter().map(TwoRaces::cells).collect(),
            ),
            (POWER, self.power.iter().map(Power::cells).collect()),
            (
                NEEDED,
                self.needed.iter().map(Needed::cells).collect::<Vec<_>>(),
            ),
        ] {
            if rows.is_empty() {
                continue;
            }
            let rule = "---|".repeat(heads.split(" | ").count());
            text += &format!("| {heads} |\n|{rule}\n");
            for row in rows {
                text += &format!("| {} |\n", row.join(" | "));
            }
            text.push('\n');
        }
        text
    }

    /// Converts the tables to JSON.
    pub fn json(&self) -> Value {
        let false_verdicts = self.false_verdicts.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals, "rounds": row.rounds,
                "at_any_look": row.at_any_look.json(), "at_the_end": row.at_the_end.json(),
                "twin": row.twin.json(), "student_alone": row.student.json(),
                "welch": row.welch.json(), "welch_in_sequence": row.in_sequence.json(),
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
                "announced_median": row.announced, "shown": row.rule.json(),
                "student_alone": row.student.json(), "welch": row.welch.json(),
                "welch_in_sequence": row.in_sequence.json(),
            })
        });
        let needed = self.needed.iter().map(|row| {
            json!({
                "condition": row.condition, "rivals": row.rivals, "difference": row.difference,
                "rounds_half_and_80": row.rule, "two_figures": row.two_figures,
                "student_alone": row.student,
            })
        });
        json!({
            "false_verdicts": false_verdicts.collect::<Vec<_>>(),
            "two_races": two_races.collect::<Vec<_>>(),
            "power": power.collect::<Vec<_>>(), "rounds_needed": needed.collect::<Vec<_>>(),
        })
    }
}

const FALSE_VERDICTS: &str = "condition | rivals | races of rounds | at any look | at the end | twin | \
                              Student alone | Welch | Welch in sequence";
const TWO_RACES: &str = "condition | rivals | second race | itself | beside the baseline | both";
const POWER: &str = "condition | rivals | rounds | announced (median) | shown | Student alone | \
                     Welch | Welch in sequence";
const NEEDED: &str =
    "condition | rivals | difference | rounds, half and 80% | two figures | Student alone";

impl FalseVerdicts {
    fn cells(&self) -> Vec<String> {
        let usual = |rate: &Rate| format!("{:.1}%", 100.0 * rate.share());
        vec![
            self.condition.clone(),
            self.rivals.to_string(),
            format!("{} of {}", self.at_any_look.of, self.rounds),
            self.at_any_look.text(),
            self.at_the_end.text(),
            self.twin.text(),
            self.student.text(),
            usual(&self.welch),
            usual(&self.in_sequence),
        ]
    }
}

impl TwoRaces {
    fn cells(&self) -> Vec<String> {
        vec![
            self.condition.clone(),
            self.rivals.to_string(),
            format!("{:.0}% slower", 100.0 * self.slower),
            self.itself.text(),
            self.beside.text(),
            self.both.text(),
        ]
    }
}

impl Power {
    fn cells(&self) -> Vec<String> {
        let shown = |rate: Rate| format!("{:.1}%", 100.0 * rate.share());
        vec![
            self.condition.clone(),
            self.rivals.to_string(),
            self.rounds.to_string(),
            format!("{:.2}%", 100.0 * self.announced),
            shown(self.rule),
            shown(self.student),
            shown(self.welch),
            shown(self.in_sequence),
        ]
    }
}

impl Needed {
    fn cells(&self) -> Vec<String> {
        let rounds = |pair: [Option<usize>; 2]| {
            let one = |rounds: Option<usize>| rounds.map_or("-".to_owned(), |one| one.to_string());
            pair.map(one).join(", ")
        };
        vec![
            self.condition.clone(),
            self.rivals.to_string(),
            format!("{:.0}%", 100.0 * self.difference),
            rounds(self.rule),
            rounds(self.two_figures),
            rounds(self.student),
        ]
    }
}
