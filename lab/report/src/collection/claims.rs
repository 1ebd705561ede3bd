//! Verdicts on published claims and on targets.

use heapdrome_schema::{ClaimResult, Collection, Holds};

use crate::foreign;
use crate::table::Column;
use crate::words;

/// Kind of a tested sentence, which determines the words for its verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Targets of heapdrome's own allocators.
    Targets,
    /// Claims of a document.
    Sentences,
}

/// The verdicts in the order in which a report lists them.
pub(super) const ORDER: [Holds; 4] = [
    Holds::Held,
    Holds::NotHeld,
    Holds::Undecided,
    Holds::CannotBeTested,
];

impl Kind {
    /// Returns the kinds of sentences in a collection. For a suite of races without sentences,
    /// returns `Sentences`, so that the report can state that the suite makes no claims.
    pub(crate) fn of(collection: &Collection) -> Vec<Self> {
        let all = [Self::Targets, Self::Sentences].into_iter();
        let kinds: Vec<Self> = all
            .filter(|kind| !kind.own(&collection.claims).is_empty())
            .collect();
        let is_suite = !collection.races.is_empty() && collection.fidelity().is_none();
        match kinds.is_empty() && is_suite {
            true => vec![Self::Sentences],
            false => kinds,
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Targets => "Targets",
            Self::Sentences => "Claims",
        }
    }

    /// Returns the title of the table, for output that needs a title in addition to the heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Targets => "Targets, tested here",
            Self::Sentences => "Published claims, tested here",
        }
    }

    pub(super) fn own(self, claims: &[ClaimResult]) -> Vec<&ClaimResult> {
        let own = claims.iter();
        own.filter(|claim| claim.target == (self == Self::Targets))
            .collect()
    }

    fn word(self, holds: Holds) -> &'static str {
        match (self, holds) {
            (Self::Targets, Holds::Held) => "reached",
            (Self::Targets, Holds::NotHeld) => "missed",
            (Self::Targets, Holds::CannotBeTested) => "not tested here",
            (Self::Sentences, Holds::Held) => "held",
            (Self::Sentences, Holds::NotHeld) => "not held",
            (Self::Sentences, Holds::CannotBeTested) => "cannot be tested here",
            (_, Holds::Undecided) => "undecided",
        }
    }

    /// Returns the word for a verdict, as a heading.
    pub(super) fn capital(self, holds: Holds) -> String {
        let word = self.word(holds);
        let place = if word.ends_with("here") { "" } else { " here" };
        format!("{}{place}", words::capital(word))
    }

    /// Formats a tally of the verdicts, such as `4 in all: 3 held, 1 not held.`
    pub(crate) fn tally(self, claims: &[ClaimResult]) -> String {
        let own = self.own(claims);
        if own.is_empty() {
            return "the suite makes none.".to_owned();
        }
        let count = |holds| own.iter().filter(|claim| claim.holds == holds).count();
        let told: Vec<String> = ORDER
            .iter()
            .map(|holds| (count(*holds), self.word(*holds)))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        format!("{} in all: {}.", own.len(), told.join(", "))
    }
}

/// Returns the claims of a kind as a table. Targets keep the order of the collection, and published
/// claims are sorted by verdict.
pub(crate) fn claims(collection: &Collection, kind: Kind) -> Vec<Column> {
    let mut ordered = kind.own(&collection.claims);
    if kind == Kind::Sentences {
        let place = |holds| ORDER.iter().position(|one| *one == holds);
        ordered.sort_by_key(|claim| place(claim.holds));
    }
    let column = |head: &str, tell: &dyn Fn(&ClaimResult) -> String| {
        Column::text(head, ordered.iter().map(|claim| tell(claim)).collect())
    };
    let [said, place] = match kind {
        Kind::Targets => ["target", "of"],
        Kind::Sentences => ["published sentence", "where"],
    };
    vec![
        column("here", &|claim| kind.word(claim.holds).to_owned()),
        column(said, &|claim| foreign::line(&claim.claim)),
        column(place, &|claim| foreign::line(&claim.source)),
        column("because", &|claim| foreign::line(&claim.because)),
    ]
}
