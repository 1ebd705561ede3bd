//! What takes part in a race.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What an entrant is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Every other entrant is compared with this one.
    Baseline,
    /// The baseline once more under a second name: the difference that it shows is noise.
    Twin,
    /// An allocator that is compared with the baseline.
    #[default]
    Rival,
}

/// One allocator with one set of settings, ready to be run: nothing is left to look up or build.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// The name by which it was asked for; unique within a race.
    pub name: String,
    /// Why it takes part.
    pub role: Role,
    /// The version of the library, as its package or its own text tells it.
    pub version: String,
    /// The object that must serve malloc; `None` for a system allocator that needs no preload.
    pub library: Option<PathBuf>,
    /// SHA-256 of `library` in hexadecimal, taken when the race was planned.
    pub sha256: Option<String>,
    /// What `LD_PRELOAD` names, in this order; the first is usually `library`.
    pub preload: Vec<PathBuf>,
    /// Environment variables that this entrant sets besides `LD_PRELOAD`.
    pub settings: BTreeMap<String, String>,
    /// Whether it is hardened: it gives up speed for safety.
    #[serde(default)]
    pub hardened: bool,
    /// Faults of this allocator that a reader of the result should know.
    pub known_faults: Vec<String>,
}

impl Entrant {
    /// The environment that makes a command run under this entrant, `LD_PRELOAD` included.
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
