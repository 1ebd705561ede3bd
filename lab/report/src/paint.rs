//! Colours, if they are wanted.

use heapdrome_record::Verdict;

/// What a verdict means to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Better than the baseline.
    Good,
    /// Worse.
    Bad,
    /// Not known to be either.
    Faint,
}

impl Tone {
    /// The tone of a verdict on a figure of which less is better.
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster | Verdict::Less => Self::Good,
            Verdict::Slower | Verdict::More => Self::Bad,
            Verdict::Undecided => Self::Faint,
        }
    }

    /// The tone of a verdict on a figure of which more is better.
    pub(crate) fn of_more(verdict: Verdict) -> Self {
        match Self::of(verdict) {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
            Self::Faint => Self::Faint,
        }
    }
}

/// Puts text into colours, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    /// What is better.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// What is worse.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// What needs care.
    pub(crate) fn care(self, text: &str) -> String {
        self.with("33", text)
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// A heading.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// `text` between the escape sequence of `code` and the one that ends it.
    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
