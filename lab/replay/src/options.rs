//! How a trace is replayed.

use std::fmt::{self, Display};

pub use heapdrome_schema::ReplaySpeed as Speed;

/// How each new block is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Touch {
    /// Nothing.
    None,
    /// Its first word.
    First,
    /// A word in each of its pages.
    #[default]
    Pages,
    /// All of it.
    All,
    /// All of a block of up to 4 KiB, both ends of a larger one and words between them, with a
    /// pattern that is compared before the block is freed or resized: not for measuring.
    Check,
}

impl Touch {
    /// Every way to touch a block.
    pub const ALL: [Self; 5] = [Self::None, Self::First, Self::Pages, Self::All, Self::Check];

    /// Returns the name by which it is asked for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::Pages => "pages",
            Self::All => "all",
            Self::Check => "check",
        }
    }

    /// Returns the way to touch of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
