//! Optional colours of text.

use heapdrome_schema::Verdict;

/// Meaning of a verdict for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Better than the baseline.
    Good,
    /// Worse than the baseline.
    Bad,
    /// Neither shown to be better nor shown to be worse.
    Faint,
}

impl Tone {
    /// Returns the tone of a verdict on a figure for which less is better.
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster | Verdict::Less => Self::Good,
            Verdict::Slower | Verdict::More => Self::Bad,
            Verdict::Undecided | Verdict::NotJudged => Self::Faint,
        }
    }

    /// Returns the tone of a verdict on a figure for which more is better.
    pub(crate) fn of_more(verdict: Verdict) -> Self {
        match Self::of(verdict) {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
            Self::Faint => Self::Faint,
        }
    }
}

/// A painter that colours text, or leaves it unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    /// Paints a good result, such as one that is better than the baseline.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Paints a bad result, such as one that is worse than the baseline.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Paints a warning.
    pub(crate) fn care(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Paints text that is less important.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Paints a heading or a label.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Surrounds `text` with the escape sequences that begin and end the style `code`. Without
    /// colours, returns `text` unchanged.
    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
