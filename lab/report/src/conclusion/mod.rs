//! The conclusion of a race: what to take, why, and how sure that is. The terminal, Markdown and the page print the
//! same three sentences.

mod choice;
mod others;
mod rivals;
mod stay;

use std::fmt;

use heapdrome_record::{EntrantResult, RaceResult, Verdict};

use crate::sheet::Sheet;
use crate::words;
use choice::choice;
pub(crate) use others::others;
pub use rivals::Figure;
use rivals::Rival;
use stay::stay;

/// A smallest difference from which on a race that shows none says nothing about time.
const COARSE: f64 = 0.1;

/// The change, if any, that a race recommends.
#[derive(Clone, Copy, Debug)]
pub enum Advice<'a> {
    /// Take this entrant.
    Take {
        /// The entrant to take.
        entrant: &'a EntrantResult,
        /// The figure that it was chosen for.
        gain: Figure,
        /// Whether it is the baseline's allocator with other settings.
        is_setting: bool,
    },
    /// Stay with the baseline: no rival was shown to be better.
    Stay,
    /// Stay with the baseline: no rival's time differs by as much as matters, and none takes less memory.
    NoneMatters,
    /// Only great differences could have been shown.
    Unclear,
    /// Nothing: no proof was taken of which allocator served.
    Unproven,
    /// Too little was measured.
    NoAnswer,
}

/// The conclusion of a race. Its `Display` prints the three sentences.
#[derive(Clone, Debug)]
pub struct Conclusion<'a> {
    /// The recommended change.
    pub advice: Advice<'a>,
    /// The recommended change, as a sentence.
    pub what: String,
    /// The reason, as a sentence.
    pub why: String,
    /// The confidence and the doubts, as a sentence.
    pub sure: String,
}

impl fmt::Display for Conclusion<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.what, self.why, self.sure)
    }
}

impl<'a> Conclusion<'a> {
    /// Draws the conclusion from every judged figure of `result`.
    pub fn of(result: &'a RaceResult) -> Self {
        Self::drawn(&Sheet::new(result))
    }

    pub(crate) fn drawn(sheet: &Sheet<'a>) -> Self {
        let rivals = rivals::compared(sheet);
        let (hardened, plain): (Vec<_>, Vec<_>) =
            rivals.into_iter().partition(|rival| rival.entrant.hardened);
        if sheet.result.rounds == 0 || (plain.is_empty() && hardened.is_empty()) {
            return no_answer(sheet);
        }
        if sheet.rows.iter().all(|row| row.entrant.proof.is_none()) {
            return unproven(sheet);
        }
        match choice(sheet, &plain) {
            Some(choice) => choice.conclusion(sheet),
            None => stay(sheet, &plain),
        }
    }

    /// The entrant to take, if there is one.
    pub fn taken(&self) -> Option<&'a EntrantResult> {
        match self.advice {
            Advice::Take { entrant, .. } => Some(entrant),
            _ => None,
        }
    }
}

fn no_answer<'a>(sheet: &Sheet<'a>) -> Conclusion<'a> {
    let baseline = sheet.baseline();
    let (why, sure) = if sheet.result.rounds == 0 {
        ("No round is complete.".to_owned(), "Run it again.")
    } else if sheet.rivals().next().is_some() {
        let why = "There is no interval before five rounds.";
        (why.to_owned(), "Run more rounds.")
    } else {
        let why = format!("There is nothing to compare with {baseline}.");
        (why, "Race it beside another allocator.")
    };
    Conclusion {
        advice: Advice::NoAnswer,
        what: format!("No answer yet: keep {baseline}."),
        why,
        sure: sure.to_owned(),
    }
}

fn unproven<'a>(sheet: &Sheet<'a>) -> Conclusion<'a> {
    Conclusion {
        advice: Advice::Unproven,
        what: format!("No answer: keep {}.", sheet.baseline()),
        why: "No proof was taken of which allocator served malloc.".to_owned(),
        sure: "The ratios hold for whatever ran, which nothing shows.".to_owned(),
    }
}

fn nothing_to_gain_in_time(rivals: &[Rival<'_>]) -> bool {
    rivals.iter().all(Rival::takes_the_same_time)
}

/// Whether the race could show more than great differences of time.
fn sees_time(sheet: &Sheet<'_>) -> bool {
    let noise = sheet.result.noise_floor.as_ref();
    noise.is_some_and(|noise| noise.smallest_difference <= COARSE)
}

/// That the baseline was shown to differ from itself, if it was.
fn twin(sheet: &Sheet<'_>) -> Option<String> {
    let again = &sheet.result.noise_floor.as_ref()?.baseline_again;
    (again.verdict != Verdict::Undecided).then(|| {
        format!(
            "{} seemed {} than itself, so differences of that size prove nothing here",
            sheet.baseline(),
            words::comparison(again, true)
        )
    })
}
