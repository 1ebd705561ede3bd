//! The tables of a profile for pprof: texts, functions, locations and mappings.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use heapdrome_profile::Profile;
use heapdrome_symbols::Place;
use heapdrome_trace::Frame;

use super::field;
use crate::foreign;
use crate::profile::code;
use crate::profile::protobuf::Message;

/// Size of a page in bytes. The end of a mapping is rounded up to a multiple of it.
const PAGE: u64 = 4096;

/// Values that are numbered in the order of their first use.
struct Numbered<T> {
    all: Vec<T>,
    places: HashMap<T, u64>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns the number of a value, counted from 0. A new value gets the next number.
    fn place(&mut self, thing: T) -> u64 {
        let next = self.all.len() as u64;
        let place = *self.places.entry(thing.clone()).or_insert(next);
        if place == next {
            self.all.push(thing);
        }
        place
    }
}

/// A location that samples refer to.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Location {
    /// A name that stands for a process, a function of the allocator, a range of sizes, or a
    /// missing stack.
    MadeUp(String),
    /// A call in the code.
    Code(Frame),
}

/// The tables of a profile. Numbers of functions, locations and mappings begin at 1, and the first
/// text is empty, because the format requires both.
pub(super) struct Locations {
    texts: Numbered<String>,
    locations: Numbered<Location>,
}

impl Locations {
    pub(super) fn new() -> Self {
        let mut texts = Numbered::new();
        texts.place(String::new());
        Self {
            texts,
            locations: Numbered::new(),
        }
    }

    /// Returns the number of a text.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.texts.place(text.to_owned())
    }

    /// Returns all texts of the table, in the order of their numbers.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts.all
    }

    /// Returns the number of the location that stands for a name.
    pub(super) fn made_up(&mut self, name: &str) -> u64 {
        self.locations.place(Location::MadeUp(name.to_owned())) + 1
    }

    /// Returns the numbers of a stack's locations, innermost first.
    pub(super) fn stack(&mut self, profile: &Profile, stack: Option<u32>) -> Vec<u64> {
        let frames = stack.and_then(|stack| profile.code.stacks.get(stack as usize));
        match frames.map_or(&[][..], Vec::as_slice) {
            [] => vec![self.made_up(code::NO_STACK)],
            frames => {
                let frames = frames.iter();
                frames
                    .map(|frame| self.locations.place(Location::Code(*frame)) + 1)
                    .collect()
            }
        }
    }

    /// Writes the mappings, the locations, and the functions of the locations.
    pub(super) fn write(&mut self, whole: &mut Message, profile: &Profile) {
        let mut functions = Numbered::new();
        let mut mappings = BTreeMap::<u32, Mapping>::new();
        for (id, location) in (1..).zip(self.locations.all.clone()) {
            let mut message = Message::default();
            message.number(field::ID, id);
            let places = match location {
                Location::MadeUp(name) => vec![place(name)],
                Location::Code(frame) => {
                    message.number(field::ADDRESS, frame.address);
                    if let Some(module) = frame.module {
                        message.number(field::MAPPING_ID, u64::from(module) + 1);
                        let mapping = mappings.entry(module).or_default();
                        mapping.add(frame, profile.symbols.places(frame));
                    }
                    of_frame(profile, frame)
                }
            };
            for Place {
                function,
                file,
                line,
            } in places
            {
                let mut inlined = Message::default();
                let function = functions.place((function, file.unwrap_or_default())) + 1;
                inlined
                    .number(field::FUNCTION_ID, function)
                    .number(field::LINE_NUMBER, line.unwrap_or(0).into());
                message.message(field::LINE, &inlined);
            }
            whole.message(field::LOCATION, &message);
        }
        // Viewers regard the first mapping as the program, so the program's module comes first.
        let mut mappings: Vec<_> = mappings.into_iter().collect();
        mappings.sort_by_key(|(module, _)| !is_program(profile, *module));
        for (module, mapping) in mappings {
            let mapping = mapping.message(self, profile, module);
            whole.message(field::MAPPING, &mapping);
        }
        for (id, (name, file)) in (1..).zip(functions.all) {
            let mut function = Message::default();
            function
                .number(field::ID, id)
                .number(field::NAME, self.text(&name))
                .number(field::FILE_NAME, self.text(&file));
            whole.message(field::FUNCTION, &function);
        }
    }
}

fn place(function: String) -> Place {
    Place {
        function,
        file: None,
        line: None,
    }
}

/// Returns the functions and lines of a frame. If none are known, returns one entry with the
/// frame's module and address.
fn of_frame(profile: &Profile, frame: Frame) -> Vec<Place> {
    match profile.symbols.places(frame) {
        [] => vec![place(code::address(profile, frame))],
        places => {
            let plain = |place: &Place| Place {
                function: foreign::line(&place.function),
                file: place.file.as_deref().map(foreign::line),
                line: place.line,
            };
            places.iter().map(plain).collect()
        }
    }
}

/// Returns whether a module is the program of the process with the highest peak.
fn is_program(profile: &Profile, module: u32) -> bool {
    let program = profile.largest().and_then(|one| one.process.as_ref());
    let module = profile.code.modules.get(module as usize);
    program
        .zip(module)
        .is_some_and(|(program, module)| program.program == module.path)
}

/// Mapping of one module, and the kinds of facts that are known about its locations.
#[derive(Default)]
struct Mapping {
    /// The highest address of a location.
    last: u64,
    /// Whether any functions, any files, any lines and any inlined functions are known.
    has: [bool; 4],
}

impl Mapping {
    fn add(&mut self, frame: Frame, places: &[Place]) {
        self.last = self.last.max(frame.address);
        let any = |of: fn(&Place) -> bool| places.iter().any(of);
        let has = [
            !places.is_empty(),
            any(|place| place.file.is_some()),
            any(|place| place.line.is_some()),
            places.len() > 1,
        ];
        for (own, has) in self.has.iter_mut().zip(has) {
            *own |= has;
        }
    }

    /// Returns the encoded mapping. It begins at 0, because addresses are the virtual addresses of
    /// the ELF file.
    fn message(self, locations: &mut Locations, profile: &Profile, module: u32) -> Message {
        let known = profile.code.modules.get(module as usize);
        let [path, build_id] = known.map_or([""; 2], |one| [&one.path[..], &one.build_id[..]]);
        let limit = (self.last / PAGE).saturating_add(1).saturating_mul(PAGE);
        let mut message = Message::default();
        message
            .number(field::ID, u64::from(module) + 1)
            .number(field::MEMORY_LIMIT, limit)
            .number(field::FILE, locations.text(&foreign::line(path)))
            .number(field::BUILD_ID, locations.text(&foreign::line(build_id)));
        for (field, has) in field::HAS.into_iter().zip(self.has) {
            message.number(field, has.into());
        }
        message
    }
}
