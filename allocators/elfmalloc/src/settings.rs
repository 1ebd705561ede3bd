//! What the environment may ask for.

use core::ffi::CStr;

use heapdrome_pages::system::variable;

/// The settings, with their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of address space for the arena; 0 makes do with small ones.
    pub arena: usize,
    /// How long idle memory is kept, in milliseconds.
    pub decay: u64,
    /// The most bytes of blocks that a thread keeps at hand of one class.
    pub magazine: usize,
    /// The most bytes of blocks that a thread keeps at hand of all classes.
    pub budget: usize,
    /// How many thread heaps have slabs of their own; the threads of all others share these.
    pub hosts: usize,
    /// Whether huge pages are asked for in large heaps; `None` leaves it to the front-end.
    pub huge_pages: Option<bool>,
    /// Whether a thread purges while all others are silent.
    pub background: bool,
    /// Whether arenas keep the states of blocks, which the hardened variant wants.
    pub states: bool,
}

impl Settings {
    /// Without any environment.
    pub const DEFAULT: Self = Self {
        arena: 1 << 40,
        decay: 800,
        magazine: 64 << 10,
        budget: 4 << 20,
        hosts: usize::MAX,
        huge_pages: None,
        background: false,
        states: false,
    };

    /// The defaults, changed as the environment says. What is not understood changes nothing.
    ///
    /// # Safety
    ///
    /// No other thread changes the environment meanwhile.
    #[must_use]
    pub unsafe fn from_environment() -> Self {
        let mut settings = Self::DEFAULT;
        // SAFETY: the caller's promise.
        let number = |name: &CStr| unsafe { variable(name) }.and_then(parse);
        if let Some(decay) = number(c"ELFMALLOC_DECAY_MS") {
            settings.decay = decay as u64;
        }
        if let Some(kibibytes) = number(c"ELFMALLOC_MAGAZINE_KIB") {
            settings.magazine = kibibytes.saturating_mul(1024).min(1 << 20);
            settings.budget = settings.magazine.saturating_mul(32);
        }
        if let Some(huge) = number(c"ELFMALLOC_HUGE_PAGES") {
            settings.huge_pages = Some(huge != 0);
        }
        if let Some(background) = number(c"ELFMALLOC_BACKGROUND_PURGE") {
            settings.background = background != 0;
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

    #[test]
    fn only_decimal_numbers_are_understood() {
        assert_eq!(parse(c"0"), Some(0));
        assert_eq!(parse(c"800"), Some(800));
        for bad in [c"", c"-1", c"8k", c" 8", c"99999999999999999999999"] {
            assert_eq!(parse(bad), None);
        }
    }
}
