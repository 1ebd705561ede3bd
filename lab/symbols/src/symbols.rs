//! Source places of the frames of a trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use heapdrome_trace::{Frame, Module};

use crate::code::Code;
use crate::places::{Note, Place};

/// Functions and lines of the frames of a trace.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    places: HashMap<Frame, Vec<Place>>,
    /// Modules whose frames have no names, one note for each.
    pub notes: Vec<Note>,
}

impl Symbols {
    /// Finds the source places of the frames. Reads the files of their modules one after the other.
    /// `debug` is the folder of debug information, usually [`DEBUG_FOLDER`](crate::DEBUG_FOLDER).
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

    /// Returns the source places of a frame, innermost first. A frame with inlined functions has
    /// several places; an unknown frame has none.
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
