//! Conditions under which a setting has an effect. If a condition is not met, a variant with this
//! setting behaves like its base.

use heapdrome_system::kernel::{HUGE_PAGES as MODE, huge_pages};
use serde::Deserialize;

/// Conditions that must all hold for a setting to have an effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Minimum version of glibc that supports the setting, as major and minor number.
    pub glibc: (u32, u32),
    /// Whether the kernel's mode of transparent huge pages must be `madvise`. Only in this mode
    /// does glibc request huge pages.
    #[serde(default)]
    pub huge_pages_by_madvise: bool,
}

/// Properties of this system that the conditions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Version of glibc; `None` if unknown, which counts as too old.
    glibc: Option<(u32, u32)>,
    /// Mode of transparent huge pages; `None` if the kernel does not support them.
    huge_pages: Option<String>,
}

impl Surroundings {
    /// Returns the properties of this system. `libc_version` is a text that contains glibc's
    /// version.
    pub(crate) fn here(libc_version: &str) -> Self {
        Self {
            glibc: version(libc_version),
            huge_pages: huge_pages(),
        }
    }
}

#[cfg(test)]
impl Surroundings {
    /// Returns the properties of a system with this version of glibc and this mode of huge pages.
    pub(crate) fn of(libc_version: &str, huge_pages: Option<&str>) -> Self {
        Self {
            glibc: version(libc_version),
            huge_pages: huge_pages.map(str::to_owned),
        }
    }
}

impl Requires {
    /// Returns the reason why the setting has no effect here; `None` if it takes effect.
    pub(crate) fn unmet(&self, here: &Surroundings) -> Option<String> {
        let (major, minor) = self.glibc;
        if here.glibc.is_none_or(|version| version < self.glibc) {
            return Some(format!(
                "the setting came with glibc {major}.{minor}, and this one is older"
            ));
        }
        if !self.huge_pages_by_madvise {
            return None;
        }
        match here.huge_pages.as_deref() {
            Some("madvise") => None,
            Some("always") => Some(format!(
                "the kernel uses huge pages for every program already ({MODE} is \
                 always), and glibc ignores the setting then"
            )),
            Some(mode) => Some(format!(
                "transparent huge pages are off; root can write madvise into {MODE}, \
                 which is {mode}"
            )),
            None => Some(format!(
                "this system has no transparent huge pages ({MODE} is missing)"
            )),
        }
    }
}

/// Returns the version in a text such as `glibc 2.36 (libc6 2.36-9)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().nth(1)?;
    let mut parts = number.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(libc: &str, mode: Option<&str>) -> Option<String> {
        let requires = Requires {
            glibc: (2, 35),
            huge_pages_by_madvise: true,
        };
        requires.unmet(&Surroundings::of(libc, mode))
    }

    #[test]
    fn a_setting_is_applicable_where_all_that_it_requires_is_there() {
        assert_eq!(on("glibc 2.36 (libc6 2.36-9)", Some("madvise")), None);
        assert_eq!(on("glibc 2.35", Some("madvise")), None);
        assert_eq!(on("glibc 3.0", Some("madvise")), None);
    }

    #[test]
    fn the_reason_names_what_is_missing() {
        for (libc, mode, reason) in [
            ("glibc 2.34", Some("madvise"), "glibc 2.35"),
            ("glibc", Some("madvise"), "glibc 2.35"),
            ("glibc 2.36", Some("always"), "already"),
            ("glibc 2.36", Some("never"), "never"),
            ("glibc 2.36", None, "missing"),
        ] {
            let why = on(libc, mode).expect("not applicable");
            assert!(why.contains(reason), "{why}");
        }
    }
}
