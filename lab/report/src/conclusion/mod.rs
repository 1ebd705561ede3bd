//! The conclusion of a race: the recommended change, the reason, and the confidence. The terminal,
//! Markdown and the page print the same text.

mod choice;
mod others;
mod replayed;
mod rivals;
mod stay;

use std::fmt;

use heapdrome_schema::{Entrant, EntrantResult, RaceResult, Verdict};

use crate::prose;
use crate::reason::{Reason, reason, reason_for};
use crate::sheet::Sheet;
use crate::words;
use choice::choice;
pub(crate) use others::others;
pub(crate) use replayed::agreement;
pub use rivals::Figure;
use rivals::Rival;
use stay::stay;

/// Limit of the smallest detectable difference. A race above this limit that shows no difference
/// supports no statement about time.
const COARSE: f64 = 0.1;

/// The recommendation of a race.
#[derive(Clone, Copy, Debug)]
pub enum Advice<'a> {
    /// Use this entrant.
    Take {
        /// The recommended entrant.
        entrant: &'a EntrantResult,
        /// Figure on which the entrant gains.
        gain: Figure,
        /// Whether the entrant is the baseline's allocator with other settings.
        is_setting: bool,
    },
    /// Keep the baseline: either no rival qualifies for a recommendation, or only hardened rivals
    /// raced.
    Stay,
    /// Keep the baseline: no allocator matters for this command. Either no rival differs enough in
    /// time and none saves enough memory, or malloc takes too little of the time.
    NoneMatters,
    /// Keep the baseline for now: the race could only have shown large differences.
    Unclear,
    /// No recommendation: it was not proven which allocator served `malloc`.
    Unproven,
    /// No recommendation: there are too few measurements, there is no rival, or a replay supports
    /// no claim.
    NoAnswer,
}

/// The conclusion of a race. Its `Display` prints `what`, `why` and `sure`.
#[derive(Clone, Debug)]
pub struct Conclusion<'a> {
    /// The recommendation.
    pub advice: Advice<'a>,
    /// The recommendation, as a sentence.
    pub what: String,
    /// The reason, in one or more sentences.
    pub why: String,
    /// The confidence and the caveats, in a few sentences; may be empty.
    pub sure: String,
}

impl fmt::Display for Conclusion<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.what, self.why, self.sure)
    }
}

impl<'a> Conclusion<'a> {
    /// Returns the conclusion of `result`.
    pub fn of(result: &'a RaceResult) -> Self {
        Self::drawn(&Sheet::new(result))
    }

    pub(crate) fn drawn(sheet: &Sheet<'a>) -> Self {
        replayed::qualified(Self::unqualified(sheet), sheet)
    }

    fn unqualified(sheet: &Sheet<'a>) -> Self {
        if let Some(conclusion) = replayed::without_claims(sheet) {
            return conclusion;
        }
        let rivals = rivals::compared(sheet);
        let (hardened, plain): (Vec<_>, Vec<_>) =
            rivals.into_iter().partition(|rival| rival.entrant.hardened);
        let proven = sheet.rows.iter().any(|row| row.entrant.proof.is_some());
        let has_rows = sheet.result.rounds > 0 && !sheet.rows.is_empty();
        if has_rows && (sheet.result.options.unproven || !proven) {
            return unproven(sheet);
        }
        if sheet.result.rounds == 0 || (plain.is_empty() && hardened.is_empty()) {
            return no_answer(sheet);
        }
        match choice(sheet, &plain) {
            Some(choice) => choice.conclusion(sheet),
            None if replayed::is_without_time(sheet) => replayed::stay(sheet, &plain),
            None => stay(sheet, &plain),
        }
    }

    /// Returns the cause of the recommended entrant's gain, as far as the evidence supports one. If
    /// a setting is recommended, returns the cause of the leading entrant's gain instead, which may
    /// mention the setting. `None` if no entrant is recommended.
    pub(crate) fn reason(&self, sheet: &Sheet<'_>) -> Option<Reason> {
        match self.advice {
            Advice::Take {
                is_setting: true, ..
            } => reason(sheet.result),
            Advice::Take { entrant, .. } => reason_for(sheet.result, &entrant.allocator),
            _ => None,
        }
    }

    /// Returns the recommended entrant; `None` if no entrant is recommended.
    pub(crate) fn recommended(&self) -> Option<&'a EntrantResult> {
        match self.advice {
            Advice::Take { entrant, .. } => Some(entrant),
            _ => None,
        }
    }

    /// Returns the recommended entrant; `None` if no entrant is recommended, or the recommended one
    /// is the command as it runs today.
    pub fn taken(&self) -> Option<&'a EntrantResult> {
        self.recommended().filter(|entrant| !is_as_is(entrant))
    }
}

fn no_answer<'a>(sheet: &Sheet<'a>) -> Conclusion<'a> {
    let baseline = sheet.baseline();
    let (why, sure) = if sheet.result.rounds == 0 {
        ("No round is complete.".to_owned(), "Run it again.")
    } else if sheet.rivals().next().is_some() {
        let why = "An interval needs at least five rounds.";
        (why.to_owned(), "Run more rounds.")
    } else {
        let why = format!("There is nothing to compare with {baseline}.");
        (why, "Race it against another allocator.")
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
        why: "It is not proven which allocator served malloc.".to_owned(),
        sure: "The ratios may compare allocators other than the named ones.".to_owned(),
    }
}

fn no_speed_differs(rivals: &[Rival<'_>]) -> bool {
    rivals.iter().all(Rival::is_as_fast_as_the_baseline)
}

/// Returns whether the race could show differences of at most [`COARSE`] in a figure of speed.
fn sees_time(sheet: &Sheet<'_>) -> bool {
    let smallest = prose::smallest_differences(sheet.result).into_iter();
    smallest
        .map(|(_, smallest)| smallest)
        .any(|one| one <= COARSE)
}

/// Returns whether the entrant is the command as it runs today.
fn is_as_is(entrant: &EntrantResult) -> bool {
    entrant.allocator == Entrant::AS_IS
}

/// Returns a remark if the baseline was shown to differ from itself.
fn twin(sheet: &Sheet<'_>) -> Option<String> {
    let again = &sheet.result.noise_floor.as_ref()?.baseline_again;
    let is_shown = !matches!(again.verdict, Verdict::Undecided | Verdict::NotJudged);
    is_shown.then(|| {
        format!(
            "a second run of {} seemed to take {} time, so differences of that size prove nothing here",
            sheet.baseline(),
            words::comparison(again, false)
        )
    })
}
