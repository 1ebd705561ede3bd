//! The code of one module: its debug information and its symbol tables.

use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use heapdrome_trace::Module;
use object::{Object as _, ObjectSection as _};

use crate::file::Files;
use crate::places::{Place, Trouble};
use crate::table::Table;

type Slice = EndianArcSlice<RunTimeEndian>;

/// Debug information and symbol tables of one module.
pub(crate) struct Code {
    lines: Option<Context<Slice>>,
    tables: Vec<Table>,
}

impl Code {
    /// Reads a module's file of code, and its file of debug information below the folder `debug`.
    ///
    /// # Errors
    /// Returns an error if no file of the module's build can be read.
    pub(crate) fn load(module: &Module, debug: &Path) -> Result<Self, Trouble> {
        let files = Files::find(module, debug)?;
        let parse =
            |bytes| object::File::parse(bytes).map_err(|error| Trouble::Damaged(error.to_string()));
        let mut code = Self {
            lines: None,
            tables: Vec::new(),
        };
        // The file with debug information comes first, because it names more functions than the
        // stripped file of code.
        for bytes in [&files.debug, &files.code].into_iter().flatten() {
            let file = parse(bytes.as_slice())?;
            let shared = files.shared.as_deref().map(parse).transpose()?;
            code.lines = code.lines.or_else(|| lines(&file, shared.as_ref()));
            code.tables.push(Table::of(&file));
        }
        code.tables.retain(|table| !table.is_empty());
        Ok(code)
    }

    /// Returns the source places of an address, innermost first; empty if none is known.
    pub(crate) fn places(&self, address: u64) -> Vec<Place> {
        let linked = || self.tables.iter().find_map(|table| table.name(address));
        let mut places = Vec::new();
        if let Some(lines) = &self.lines {
            // If the data are damaged, the places read up to the damage are kept.
            let _ = inlined(lines, address, &mut places);
        }
        // Only the outermost function has a symbol of its own, so only its name can come from a
        // symbol table.
        if let Some(last) = places.last_mut()
            && last.function.is_empty()
        {
            last.function = linked().unwrap_or_default();
        }
        places.retain(|place| !place.function.is_empty());
        if places.is_empty() {
            let place = |function| Place {
                function,
                file: None,
                line: None,
            };
            places.extend(linked().map(place));
        }
        places
    }
}

/// Returns the debug information of a file, if it exists and is readable.
fn lines(file: &object::File<'_>, shared: Option<&object::File<'_>>) -> Option<Context<Slice>> {
    file.section_by_name(".debug_info")
        .or_else(|| file.section_by_name(".zdebug_info"))?;
    let mut dwarf = Dwarf::load(|section| section_of(file, section)).ok()?;
    if let Some(shared) = shared {
        dwarf.load_sup(|section| section_of(shared, section)).ok()?;
    }
    Context::from_dwarf(dwarf).ok()
}

fn section_of(file: &object::File<'_>, section: gimli::SectionId) -> Result<Slice, gimli::Error> {
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let section = file.section_by_name(section.name());
    let bytes = section.and_then(|section| section.uncompressed_data().ok());
    let bytes = Arc::from(bytes.as_deref().unwrap_or_default());
    Ok(EndianArcSlice::new(bytes, endian))
}

/// Adds the functions at an address to `places`, innermost first. A function without a known name
/// gets an empty name.
fn inlined(
    lines: &Context<Slice>,
    address: u64,
    places: &mut Vec<Place>,
) -> Result<(), gimli::Error> {
    let mut frames = lines.find_frames(address).skip_all_loads()?;
    while let Some(frame) = frames.next()? {
        let name = frame.function.as_ref();
        let name = name.and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
        let location = frame.location.as_ref();
        places.push(Place {
            function: name.unwrap_or_default(),
            file: location.and_then(|place| place.file).map(str::to_owned),
            line: location
                .and_then(|place| place.line)
                .filter(|line| *line > 0),
        });
    }
    Ok(())
}
