//! Reads from ELF files which allocation functions they define, and which slots hold the addresses
//! of the allocation functions that they call.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use object::elf::{self, FileHeader64};
use object::read::elf::{
    FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable,
};
use object::{Endianness, ReadCache, ReadRef};

use crate::families::Search;
use crate::layout::FUNCTIONS;

/// Length of the longest name in [`FUNCTIONS`].
const LONGEST: usize = {
    let (mut place, mut longest) = (0, 0);
    while place < FUNCTIONS.len() {
        if FUNCTIONS[place].len() > longest {
            longest = FUNCTIONS[place].len();
        }
        place += 1;
    }
    longest
};

/// Location of a function's definition, or of the slot through which a file calls the function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The virtual address, as the file states it.
    pub(crate) address: u64,
    /// The function, as an index into [`FUNCTIONS`].
    pub(crate) function: usize,
}

/// Part of a file that the loader maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Offset of the segment in the file.
    pub(crate) offset: u64,
    /// Virtual address of the segment, as the file states it.
    pub(crate) address: u64,
    /// Length of the segment in the file.
    pub(crate) length: u64,
}

/// Properties of a program or library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    /// Whether the object is built for the machine and word size of the witness.
    pub(crate) native: bool,
    /// Whether a dynamic loader starts the object. Always set if the object is not native.
    pub(crate) dynamic: bool,
    /// Definitions of the [`FUNCTIONS`] that the object exports.
    pub(crate) definitions: Vec<Slot>,
    /// Slots through which the object calls [`FUNCTIONS`].
    pub(crate) slots: Vec<Slot>,
    /// File offset and virtual address of the first segment.
    pub(crate) first_segment: (u64, u64),
    /// Executable segments of the object.
    pub(crate) code: Vec<Segment>,
    /// Name that identifies an allocator that the program defines under unusual names: a function
    /// such as `mi_malloc_aligned`, or a crate.
    pub(crate) private_malloc: Option<String>,
    /// Virtual address of the program's `operator new(size_t)`, if it defines one. The C++
    /// runtime's other forms of the operator call this one.
    pub(crate) own_new: Option<u64>,
}

impl Object {
    /// Returns whether the object exports a function.
    pub(crate) fn defines(&self, function: usize) -> bool {
        self.definitions
            .iter()
            .any(|known| known.function == function)
    }

    /// Returns whether the object exports a function at this virtual address of its file.
    pub(crate) fn defines_at(&self, function: usize, address: u64) -> bool {
        let mut definitions = self.definitions.iter();
        definitions.any(|known| known.function == function && known.address == address)
    }

    /// Returns whether the object calls a function through a slot.
    pub(crate) fn calls(&self, function: usize) -> bool {
        self.slots.iter().any(|slot| slot.function == function)
    }
}

type Key = (u64, u64, i64, i64);

/// Cache of the properties of files. A witness reads each file once, even if many processes map it.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    known: Mutex<HashMap<Key, Option<Arc<Object>>>>,
}

impl Objects {
    /// Returns the properties of a file; `None` if it cannot be read or is not an ELF file.
    pub(crate) fn get(&self, path: &Path) -> Option<Arc<Object>> {
        let status = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let key = (
            status.dev(),
            status.ino(),
            status.mtime(),
            status.mtime_nsec(),
        );
        if let Some(known) = self.known.lock().ok()?.get(&key) {
            return known.clone();
        }
        let object = read(path).map(Arc::new);
        self.known.lock().ok()?.insert(key, object.clone());
        object
    }
}

fn read(path: &Path) -> Option<Object> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let identity = (&cache).read_bytes_at(0, 20).ok()?;
    if !identity.starts_with(b"\x7fELF") {
        return None;
    }
    let native_machine = if cfg!(target_arch = "aarch64") {
        elf::EM_AARCH64
    } else {
        elf::EM_X86_64
    };
    let machine = u16::from_le_bytes([identity[18], identity[19]]);
    if identity[4] != elf::ELFCLASS64 || machine != native_machine {
        return Some(Object {
            dynamic: true,
            ..Object::default()
        });
    }
    let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &cache).ok()?;
    let mut object = Object {
        native: true,
        ..Object::default()
    };
    object.dynamic = segments
        .iter()
        .any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    let mut loaded = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
        .peekable();
    if let Some(first) = loaded.peek() {
        object.first_segment = (first.p_offset(endian), first.p_vaddr(endian));
    }
    let code = loaded.filter(|segment| segment.p_flags(endian) & elf::PF_X != 0);
    object.code = code
        .map(|segment| Segment {
            offset: segment.p_offset(endian),
            address: segment.p_vaddr(endian),
            length: segment.p_filesz(endian),
        })
        .collect();
    read_tables(header, endian, &cache, &mut object);
    Some(object)
}

type Cache<'a> = &'a ReadCache<File>;

fn read_tables<'a>(
    header: &'a FileHeader64<Endianness>,
    endian: Endianness,
    cache: Cache<'a>,
    object: &mut Object,
) -> Option<()> {
    let sections = header.sections(endian, cache).ok()?;
    let dynamic = Symbols::read(&sections, endian, cache, elf::SHT_DYNSYM)?;
    let wanted = wanted_symbols(&dynamic, endian, object);
    for section in sections.iter() {
        let Ok(Some((entries, link))) = section.rela(endian, cache) else {
            continue;
        };
        if link != dynamic.table.section() {
            continue;
        }
        for entry in entries {
            if let Some(&function) = wanted.get(&entry.r_sym(endian, false)) {
                object.slots.push(Slot {
                    address: entry.r_offset(endian),
                    function,
                });
            }
        }
    }
    if object.dynamic {
        // Only a program's full table is read, because a library's full table can be huge.
        let all = Symbols::read(&sections, endian, cache, elf::SHT_SYMTAB)?;
        object.private_malloc = private_malloc([&dynamic, &all], endian);
        let own_new = |symbols: &Symbols| {
            let mut defined = symbols.defined(endian);
            let (symbol, _) = defined.find(|(_, name)| *name == b"_Znwm")?;
            Some(symbol.st_value(endian))
        };
        object.own_new = own_new(&dynamic).or_else(|| own_new(&all));
    }
    Some(())
}

type Header = FileHeader64<Endianness>;

/// Symbol table and its names. The names are read in one piece. Reading each of hundreds of
/// thousands of names through the cache would take a system call or more.
struct Symbols<'a> {
    table: SymbolTable<'a, Header, Cache<'a>>,
    names: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// Reads the symbol table in the section of type `kind`. Returns an empty table if the file has
    /// none, and `None` if it is damaged.
    fn read(
        sections: &SectionTable<'a, Header, Cache<'a>>,
        endian: Endianness,
        cache: Cache<'a>,
        kind: u32,
    ) -> Option<Self> {
        let table = sections.symbols(endian, cache, kind).ok()?;
        let names = match table.is_empty() {
            true => &[][..],
            false => {
                let section = sections.section(table.string_section()).ok()?;
                section.data(endian, cache).ok()?
            }
        };
        Some(Self { table, names })
    }

    /// Returns the symbols with their indices and names.
    fn named(
        &self,
        endian: Endianness,
    ) -> impl Iterator<Item = (usize, &'a elf::Sym64<Endianness>, &'a [u8])> {
        let name = move |symbol: &elf::Sym64<Endianness>| {
            let rest = self.names.get(symbol.st_name(endian) as usize..)?;
            rest.split(|&byte| byte == 0).next()
        };
        let symbols = self.table.symbols().iter().enumerate();
        symbols.filter_map(move |(place, symbol)| Some((place, symbol, name(symbol)?)))
    }

    /// Returns the symbols that the file defines, with their names.
    fn defined(
        &self,
        endian: Endianness,
    ) -> impl Iterator<Item = (&'a elf::Sym64<Endianness>, &'a [u8])> {
        let known = self.named(endian).map(|(_, symbol, name)| (symbol, name));
        known.filter(move |(symbol, _)| symbol.st_shndx(endian) != elf::SHN_UNDEF)
    }
}

/// Returns a map from symbol indices to indices of [`FUNCTIONS`], for the dynamic symbols that are
/// allocation functions. Records in `object` those that the file defines.
fn wanted_symbols(
    symbols: &Symbols,
    endian: Endianness,
    object: &mut Object,
) -> HashMap<u32, usize> {
    let mut wanted = HashMap::new();
    let known = symbols.named(endian);
    for (place, symbol, name) in known.filter(|(.., name)| name.len() <= LONGEST) {
        let Some(function) = FUNCTIONS.iter().position(|known| known.as_bytes() == name) else {
            continue;
        };
        if symbol.st_shndx(endian) != elf::SHN_UNDEF {
            object.definitions.push(Slot {
                address: symbol.st_value(endian),
                function,
            });
        }
        wanted.insert(place as u32, function);
    }
    wanted
}

/// Returns a name that identifies the program's allocator, if that allocator does not use the usual
/// names.
fn private_malloc(tables: [&Symbols; 2], endian: Endianness) -> Option<String> {
    let mut search = Search::default();
    for symbols in tables {
        for (_, name) in symbols.defined(endian) {
            search.see(name);
        }
    }
    search.found()
}
