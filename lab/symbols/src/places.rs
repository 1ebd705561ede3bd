//! Places in source code, one or several for each frame.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use heapdrome_trace::{Frame, Module};

use crate::code::Code;

/// A place in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the function as in the source, or its symbol if that cannot be decoded.
    pub function: String,
    /// Path of the source file, as passed to the compiler.
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
    /// The file belongs to another build.
    #[error("it has build id {found}, and had {recorded} when it was recorded")]
    OtherBuild {
        /// Build id of the file; empty if it has none.
        found: String,
        /// Build id in the trace.
        recorded: String,
    },
    /// The file is damaged, or no ELF file.
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

/// Functions and lines of the frames of a trace.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    places: HashMap<Frame, Vec<Place>>,
    /// Modules whose frames have no names, one note for each.
    pub notes: Vec<Note>,
}

impl Symbols {
    /// Reads the files of these modules, one after the other, as far as the frames need them.
    /// `debug` is the folder of debug information, normally [`DEBUG_FOLDER`](crate::DEBUG_FOLDER).
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

    /// Returns the places of a frame, innermost first: several if functions were inlined, none if
    /// nothing is known.
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
