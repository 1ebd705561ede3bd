//! What the environment may ask for.

use core::ffi::CStr;

use heapdrome_pages::system::variable;

/// The magazines of a thread may hold together as many times what one of small blocks may.
const ALL_MAGAZINES: usize = 64;
/// The most that a magazine of small blocks may be asked to hold.
const LARGEST_MAGAZINE: usize = 1 << 20;

/// The smallest arena where the address space is limited: 8 GiB, whose map takes 128 KiB.
const LEAST_ARENA: usize = 8 << 30;

/// The settings, with their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes of address space that the arena may grow to; 0 makes do with small ones.
    pub arena: usize,
    /// How long idle memory is kept, in milliseconds.
    pub decay: u64,
    /// The most bytes of blocks that a thread keeps at hand of one class.
    pub magazine: usize,
    /// The most bytes of blocks that a thread keeps at hand of all classes.
    pub budget: usize,
    /// Number of shards: threads that are more share them.
    pub shards: usize,
    /// Whether huge pages are asked for in large heaps; `None` leaves it to the front-end.
    pub huge_pages: Option<bool>,
    /// Whether a thread purges while all others are silent.
    pub background: bool,
    /// Whether the hardened variant overwrites the whole of each freed block.
    pub overwrite: bool,
    /// Whether arenas keep the states of blocks, which the hardened variant wants.
    pub states: bool,
}

impl Settings {
    /// Without any environment.
    pub const DEFAULT: Self = Self {
        arena: 1 << 40,
        decay: 800,
        magazine: 64 << 10,
        budget: ALL_MAGAZINES * (64 << 10),
        shards: usize::MAX,
        huge_pages: None,
        background: false,
        overwrite: false,
        states: false,
    };

    /// Size of the arena where the address space is limited to `limit` bytes: room for the limit to
    /// be raised a little, and less memory for what describes the arena.
    pub(crate) fn arena_within(limit: usize) -> usize {
        let largest = Self::DEFAULT.arena;
        (limit.min(largest) * 2)
            .next_power_of_two()
            .clamp(LEAST_ARENA, largest)
    }

    /// The defaults, changed as the environment says. What is not understood changes nothing.
    ///
    /// # Safety
    ///
    /// No other thread changes the environment meanwhile.
    #[must_use]
    pub unsafe fn from_environment() -> Self {
        // SAFETY: the caller's promise.
        Self::read(|name| unsafe { variable(name) })
    }

    /// The settings of an environment in which `value_of` looks up variables.
    fn read<'a>(value_of: impl Fn(&CStr) -> Option<&'a CStr>) -> Self {
        let mut settings = Self::DEFAULT;
        let number = |name: &CStr| value_of(name).and_then(parse);
        if let Some(decay) = number(c"ELFMALLOC_DECAY_MS") {
            settings.decay = decay as u64;
        }
        if let Some(kibibytes) = number(c"ELFMALLOC_MAGAZINE_KIB") {
            settings.magazine = kibibytes.saturating_mul(1024).min(LARGEST_MAGAZINE);
            settings.budget = settings.magazine * ALL_MAGAZINES;
        }
        if let Some(huge) = number(c"ELFMALLOC_HUGE_PAGES") {
            settings.huge_pages = Some(huge != 0);
        }
        if let Some(background) = number(c"ELFMALLOC_BACKGROUND_PURGE") {
            settings.background = background != 0;
        }
        if let Some(overwrite) = number(c"ELFMALLOC_OVERWRITE") {
            settings.overwrite = overwrite != 0;
        }
        settings
    }
}

fn parse(text: &CStr) -> Option<usize> {
    let digits = text.to_bytes();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_usize, |value, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(usize::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::front_end::{FrontEnd, Magazines};
    use std::ffi::CString;
    use std::string::String;
    use std::vec::Vec;

    /// Each variable that is a number, with the default that the documentation gives it.
    fn documented() -> Vec<(CString, CString)> {
        let page = include_str!("../../../docs/elfmalloc.md");
        let cells = |line: &'static str| {
            let mut cells = line
                .strip_prefix("| `ELFMALLOC_")?
                .split('|')
                .map(str::trim);
            let name = String::from("ELFMALLOC_") + cells.next()?.trim_end_matches('`');
            let default = cells.next()?.split(' ').next()?;
            default.parse::<u64>().ok()?;
            Some((CString::new(name).ok()?, CString::new(default).ok()?))
        };
        page.lines().filter_map(cells).collect()
    }

    fn with(name: &CStr, value: &CStr) -> Settings {
        Settings::read(|asked| (asked == name).then_some(value))
    }

    #[test]
    fn a_default_said_aloud_changes_nothing() {
        let documented = documented();
        assert_eq!(documented.len(), 5, "{documented:?}");
        // What the front-end says where nothing else does.
        let default = Settings {
            huge_pages: Some(Magazines::HUGE_PAGES),
            ..Settings::DEFAULT
        };
        for (name, value) in &documented {
            let settings = with(name, value);
            let huge_pages = settings.huge_pages.or(default.huge_pages);
            assert_eq!(
                Settings {
                    huge_pages,
                    ..settings
                },
                default,
                "{name:?}"
            );
        }
    }

    #[test]
    fn every_variable_is_read_and_what_is_no_number_counts_as_not_set() {
        for (name, default) in &documented() {
            assert_ne!(with(name, c"7"), Settings::DEFAULT, "{name:?}={default:?}");
            for bad in [c"", c"-1", c"8k", c" 8", c"on", c"99999999999999999999999"] {
                assert_eq!(with(name, bad), Settings::DEFAULT, "{name:?}={bad:?}");
            }
        }
    }

    #[test]
    fn magazines_have_a_limit_and_a_thread_has_64_times_that() {
        for (said, magazine) in [
            (c"0", 0),
            (c"1", 1 << 10),
            (c"1024", 1 << 20),
            (c"5000", 1 << 20),
        ] {
            let settings = with(c"ELFMALLOC_MAGAZINE_KIB", said);
            assert_eq!(
                (settings.magazine, settings.budget),
                (magazine, magazine * 64)
            );
        }
    }

    #[test]
    fn only_decimal_numbers_are_understood() {
        assert_eq!(parse(c"0"), Some(0));
        assert_eq!(parse(c"800"), Some(800));
        for bad in [c"", c"-1", c"8k", c" 8", c"99999999999999999999999"] {
            assert_eq!(parse(bad), None);
        }
    }
}
