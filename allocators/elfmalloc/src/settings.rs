//! Settings, and the environment variables that override them.

use core::ffi::CStr;

use heapdrome_pages::system::variable;

use crate::line::Line;

/// Ratio of the budget of all magazines of a thread to the budget of one magazine of small blocks.
const ALL_MAGAZINES: usize = 64;
/// Maximum budget of one magazine of small blocks, in bytes. Larger settings are lowered to it.
const LARGEST_MAGAZINE: usize = 1 << 20;

/// Minimum size of the arena if the address space is limited. The class map of an arena of this
/// size takes 128 KiB.
const LEAST_ARENA: usize = 8 << 30;

/// Settings of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum number of bytes of address space in the arena. If 0, the allocator creates several
    /// small arenas.
    pub arena: usize,
    /// Time for which idle memory is kept, in milliseconds.
    pub decay: u64,
    /// Maximum number of bytes of small blocks of one class in a thread's magazine.
    pub magazine: usize,
    /// Maximum number of bytes to which a thread's magazines grow, apart from their first slots.
    pub budget: usize,
    /// Initial maximum number of shards. With more threads than that, some threads share a shard.
    pub shards: usize,
    /// Whether large heaps and large blocks request huge pages; `None` leaves the choice to the
    /// front-end.
    pub huge_pages: Option<bool>,
    /// Whether a background thread purges while the program is idle.
    pub background: bool,
    /// Whether the hardened variant overwrites freed blocks completely.
    pub overwrite: bool,
    /// Whether arenas record the states of blocks. The hardened variant requires this.
    pub states: bool,
}

impl Settings {
    /// Defaults, used if the environment sets no variable.
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

    /// Returns the size of the arena if the address space is limited to `limit` bytes. The arena is
    /// larger than the limit, which the program may raise later, but not larger than the default
    /// arena. A smaller arena has smaller structures.
    pub(crate) fn arena_within(limit: usize) -> usize {
        let largest = Self::DEFAULT.arena;
        (limit.min(largest) * 2)
            .next_power_of_two()
            .clamp(LEAST_ARENA, largest)
    }

    /// Returns the defaults, changed by the environment. Invalid values are ignored.
    ///
    /// # Safety
    ///
    /// No other thread changes the environment during the call.
    #[must_use]
    pub unsafe fn from_environment() -> Self {
        // SAFETY: by this function's contract, no other thread changes the environment during the
        // call. The values are used only during the call.
        unsafe {
            Self::read(
                |name| variable(name),
                |name, value| report_ignored(name, value, "a decimal number"),
            )
        }
    }

    /// Returns the defaults, changed by the variables whose values `value_of` returns. Passes the
    /// name and the value of each invalid variable to `ignore`.
    fn read<'a>(
        value_of: impl Fn(&CStr) -> Option<&'a CStr>,
        mut ignore: impl FnMut(&CStr, &CStr),
    ) -> Self {
        let mut settings = Self::DEFAULT;
        let mut number = |name: &CStr| {
            let value = value_of(name)?;
            let number = parse(value);
            if number.is_none() {
                ignore(name, value);
            }
            number
        };
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

/// Reports on standard error why a variable is ignored, if `ELFMALLOC_VERBOSE` is set to a value
/// other than 0.
///
/// # Safety
///
/// No other thread changes the environment during the call.
pub(crate) unsafe fn report_ignored(name: &CStr, value: &CStr, expected: &str) {
    // SAFETY: by this function's contract, no other thread changes the environment.
    if unsafe { variable(c"ELFMALLOC_VERBOSE") }.is_none_or(|verbose| verbose == c"0") {
        return;
    }
    let parts: [&[u8]; 7] = [
        b"ignored ",
        name.to_bytes(),
        b": expected ",
        expected.as_bytes(),
        b", got \"",
        value.to_bytes(),
        b"\"",
    ];
    let mut line = Line::new();
    parts.into_iter().for_each(|part| line.text(part));
    line.write();
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
    use std::borrow::ToOwned;
    use std::ffi::CString;
    use std::string::String;
    use std::vec::Vec;

    /// Returns the name and documented default of each variable whose default is a number.
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
        Settings::read(|asked| (asked == name).then_some(value), |_, _| ())
    }

    #[test]
    fn a_default_said_aloud_changes_nothing() {
        let documented = documented();
        assert_eq!(documented.len(), 5, "{documented:?}");
        // The documented default of huge pages is that of the front-end with magazines.
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
    fn each_invalid_variable_is_passed_on() {
        let mut ignored = Vec::new();
        let value_of = |name: &CStr| match name.to_bytes() {
            b"ELFMALLOC_DECAY_MS" => Some(c"8k"),
            b"ELFMALLOC_OVERWRITE" => Some(c""),
            b"ELFMALLOC_HUGE_PAGES" => Some(c"0"),
            _ => None,
        };
        Settings::read(value_of, |name, value| {
            ignored.push((name.to_owned(), value.to_owned()));
        });
        let expected = [
            (c"ELFMALLOC_DECAY_MS", c"8k"),
            (c"ELFMALLOC_OVERWRITE", c""),
        ];
        assert_eq!(ignored, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
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
