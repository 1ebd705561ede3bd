//! Participants of a race.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Role of an entrant in its race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The entrant with which every other entrant is compared.
    Baseline,
    /// The baseline again, under a second name. Any difference between the two is noise.
    Twin,
    /// An allocator that is compared with the baseline.
    #[default]
    Rival,
}

/// An allocator with its settings, ready to run: nothing is left to look up or build.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Name of the entrant, unique within a race.
    pub name: String,
    /// Role in the race.
    pub role: Role,
    /// Version of the library, according to its entry in the registry or its package.
    pub version: String,
    /// Object that must serve malloc, unless `as_is` is set; `None` for a system allocator that
    /// needs no preload.
    pub library: Option<PathBuf>,
    /// SHA-256 of `library` in hexadecimal, taken when the race was planned.
    pub sha256: Option<String>,
    /// Files for `LD_PRELOAD`, in this order; the first is usually `library`.
    pub preload: Vec<PathBuf>,
    /// Environment variables that this entrant sets in addition to `LD_PRELOAD`.
    pub settings: BTreeMap<String, String>,
    /// Whether the allocator gives up speed for safety.
    #[serde(default)]
    pub hardened: bool,
    /// Faults of this allocator that matter to a reader of the result.
    pub known_faults: Vec<String>,
    /// Faults of the allocator's `operator new`, which affect only commands that call it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults_of_new: Vec<String>,
    /// Whether the entrant is the command as it runs today. If so, nothing is preloaded, any object
    /// may serve malloc, and `library` is the object that was found to serve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_is: bool,
}

/// Variable with the tunables of glibc, including those of malloc, separated by colons.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Returns the value of the variable `name` for an entrant that sets it to `own`, in a command
/// whose environment sets it to `given`. The entrant's value replaces the command's. Only the value
/// of `GLIBC_TUNABLES` is merged: the entrant's value replaces the tunables that it sets, and keeps
/// the others.
pub fn merged_setting(name: &str, own: &str, given: Option<&str>) -> String {
    let given = given.filter(|_| name == TUNABLES).unwrap_or_default();
    let tunable = |setting: &str| setting.split('=').next().map(str::to_owned);
    let is_own = |setting: &&str| own.split(':').any(|one| tunable(one) == tunable(setting));
    let others = given
        .split(':')
        .filter(|one| !one.is_empty() && !is_own(one));
    others.chain([own]).collect::<Vec<_>>().join(":")
}

impl Entrant {
    /// Name of the entrant that stands for the command as it runs today.
    pub const AS_IS: &str = "as-is";

    /// Returns whether the entrant preloads nothing and stands for the C library's malloc.
    pub fn means_system(&self) -> bool {
        self.preload.is_empty() && !self.as_is
    }

    /// Returns the environment variables to set for commands under this entrant, including
    /// `LD_PRELOAD` if the entrant preloads an object.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.settings.clone();
        if !self.preload.is_empty() {
            let paths: Vec<_> = self
                .preload
                .iter()
                .map(|path| path.to_string_lossy())
                .collect();
            environment.insert("LD_PRELOAD".to_owned(), paths.join(":"));
        }
        environment
    }
}

#[cfg(test)]
mod tests {
    use super::merged_setting;

    #[test]
    fn tunables_of_glibc_are_merged_and_other_settings_replaced() {
        let own = "glibc.malloc.hugetlb=1";
        let given = "glibc.malloc.hugetlb=0:glibc.pthread.rseq=0::glibc.malloc.check=3";
        let merged = merged_setting("GLIBC_TUNABLES", own, Some(given));
        assert_eq!(
            merged,
            "glibc.pthread.rseq=0:glibc.malloc.check=3:glibc.malloc.hugetlb=1"
        );
        assert_eq!(merged_setting("GLIBC_TUNABLES", own, Some(&merged)), merged);
        assert_eq!(merged_setting("GLIBC_TUNABLES", own, None), own);
        assert_eq!(merged_setting("MALLOC_CONF", "a:1", Some("b:2")), "a:1");
    }
}
