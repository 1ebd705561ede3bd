//! Options of a replay.

use std::fmt::{self, Display};

pub use heapdrome_schema::ReplaySpeed as Speed;

/// Way of writing to each new block. A resize only writes to the added bytes, except for `Check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Touch {
    /// Writes nothing.
    None,
    /// Writes the first word of the block. Writes nothing after a resize, unless the old size was
    /// 0.
    First,
    /// Writes a word in each page of the block. If the last resize of a block grows it ahead of
    /// need, omits the pages at the end that a program is expected to leave unused.
    #[default]
    Pages,
    /// Writes all bytes of the block.
    All,
    /// Writes a pattern, and compares it before the block is freed, after it was resized, and at
    /// the end. The pattern covers blocks of up to 4 KiB completely. In a larger block, it covers
    /// both ends and some words between them. Not for measuring.
    Check,
}

impl Touch {
    /// Every way to touch a block.
    pub const ALL: [Self; 5] = [Self::None, Self::First, Self::Pages, Self::All, Self::Check];

    /// Returns the command-line name of this way of writing.
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

    /// Returns the way of writing with this command-line name; `None` if the name is unknown.
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
