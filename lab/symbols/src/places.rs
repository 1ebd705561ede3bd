//! The places in the source that frames stand for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use heapdrome_trace::{Frame, Module};

use crate::code::Code;

/// A place in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function, as it is written in the source; as it is linked, if its name cannot be
    /// decoded.
    pub function: String,
    /// The path of the source file, as the compiler knew it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// Why the frames of a module have no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The file cannot be read, and no debug information with its build id is installed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The file is of another build.
    #[error("it has build id {found}, and had {recorded} when it was recorded")]
    OtherBuild {
        /// Its build id; empty if it has none.
        found: String,
        /// The build id in the trace.
        recorded: String,
    },
    /// The file is no ELF file, or a damaged one.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A module whose frames have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The path of the module.
    pub path: String,
    /// The reason.
    pub trouble: Trouble,
}

/// What is known of the frames of a trace.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    places: HashMap<Frame, Vec<Place>>,
    /// Modules whose frames have no names, one note for each.
    pub notes: Vec<Note>,
}

impl Symbols {
    /// Reads the files of these modules as far as the frames need them, one after the other.
    /// `debug` is the folder of debug information, [`DEBUG_FOLDER`](crate::DEBUG_FOLDER) as a rule.
    #[must_use]
    pub fn find(modules: &[Module], frames: impl Iterator<Item = Frame>, debug: &Path) -> Self {
        let mut addresses = BTreeMap::<u32, BTreeSet<u64>>::new();
        for frame in frames {
            if let Some(module) = frame.module {
                addresses.entry(module).or_default().insert(frame.address);
            }
        }
        let mut found = Self::default();
        for (number, addresses) in addresses {
            let Some(module) = modules.get(number as usize) else {
                continue;
            };
            match Code::load(module, debug) {
                Ok(code) => found.add(number, &code, addresses),
                Err(trouble) => found.notes.push(Note {
                    path: module.path.clone(),
                    trouble,
                }),
            }
        }
        found
    }

    /// The places that a frame stands for, innermost first: more than one where functions were
    /// inlined, none where nothing is known.
    #[must_use]
    pub fn places(&self, frame: Frame) -> &[Place] {
        self.places.get(&frame).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, module: u32, code: &Code, addresses: BTreeSet<u64>) {
        for address in addresses {
            let places = code.places(address);
            if !places.is_empty() {
                let module = Some(module);
                self.places.insert(Frame { module, address }, places);
            }
        }
    }
}
