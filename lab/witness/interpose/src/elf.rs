//! Finds definitions in loaded objects by reading their symbol tables in memory.
//!
//! `dlsym` is not suitable: it may allocate, which is not allowed within malloc, and it does not
//! search objects that were loaded into a local scope.

use crate::system::{self, ObjectInfo, PT_DYNAMIC, PT_LOAD, ProgramHeader};

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const INDIRECT_FUNCTION: u8 = 10;
const HIDDEN_VERSION: u16 = 0x8000;

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

/// Addresses of an object's symbol tables.
#[derive(Clone, Copy)]
pub struct Tables {
    base: usize,
    symbols: *const Symbol,
    names: *const u8,
    versions: *const u16,
    gnu_hash: *const u32,
    hash: *const u32,
}

fn headers(object: &ObjectInfo) -> &[ProgramHeader] {
    if object.headers.is_null() {
        return &[];
    }
    // SAFETY: the loader guarantees `header_count` headers at `headers` while the object is loaded,
    // and every caller passes a loaded object.
    unsafe { core::slice::from_raw_parts(object.headers, usize::from(object.header_count)) }
}

/// Returns the first address of an object and the number of bytes from there to its end.
pub fn extent(object: &ObjectInfo) -> (usize, usize) {
    let loads = || {
        headers(object)
            .iter()
            .filter(|header| header.kind == PT_LOAD)
    };
    let low = loads().map(|header| header.address).min().unwrap_or(0) as usize;
    let high = loads()
        .map(|header| header.address + header.memory_size)
        .max()
        .unwrap_or(0);
    (object.base.wrapping_add(low), high as usize - low)
}

/// Returns the symbol tables of an object; `None` if it has none.
///
/// # Safety
/// `object` describes a loaded object, which is not unloaded during the call.
pub unsafe fn tables(object: &ObjectInfo) -> Option<Tables> {
    let dynamic = headers(object)
        .iter()
        .find(|header| header.kind == PT_DYNAMIC)?;
    let mut entry = object.base.wrapping_add(dynamic.address as usize) as *const Dynamic;
    // Most objects have addresses here, which the loader has relocated. The vDSO has offsets.
    let absolute = |value: u64| {
        let value = value as usize;
        if value < object.base {
            value + object.base
        } else {
            value
        }
    };
    let mut found = Tables {
        base: object.base,
        symbols: core::ptr::null(),
        names: core::ptr::null(),
        versions: core::ptr::null(),
        gnu_hash: core::ptr::null(),
        hash: core::ptr::null(),
    };
    // SAFETY: by contract the object stays loaded during the call. Its dynamic section ends with an
    // entry of tag zero.
    unsafe {
        while (*entry).tag != 0 {
            let address = absolute((*entry).value);
            match (*entry).tag {
                DT_SYMTAB => found.symbols = address as *const Symbol,
                DT_STRTAB => found.names = address as *const u8,
                DT_VERSYM => found.versions = address as *const u16,
                DT_GNU_HASH => found.gnu_hash = address as *const u32,
                DT_HASH => found.hash = address as *const u32,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    (!found.symbols.is_null() && !found.names.is_null()).then_some(found)
}

/// Returns the address of the function that an object defines under `name`; `None` if it defines
/// none.
///
/// # Safety
/// `tables` are the tables of a loaded object, which is not unloaded during the call.
pub unsafe fn definition(tables: &Tables, name: &str) -> Option<usize> {
    // SAFETY: by this function's contract the tables belong to a loaded object. Each branch reads a
    // hash table whose address was found.
    let symbol = unsafe {
        if !tables.gnu_hash.is_null() {
            by_gnu_hash(tables, name)
        } else if !tables.hash.is_null() {
            by_hash(tables, name)
        } else {
            None
        }
    }?;
    let address = tables.base.wrapping_add(symbol.value as usize);
    if symbol.info & 15 != INDIRECT_FUNCTION {
        return Some(address);
    }
    let features = Features::read();
    // SAFETY: a symbol of this type names a resolver, a function that returns an address. On
    // aarch64 it has these arguments. On x86-64 it has none, and ignores the registers that hold
    // them.
    let choose: extern "C" fn(u64, &Features) -> usize = unsafe { core::mem::transmute(address) };
    Some(choose(features.first | HAS_FEATURES, &features))
}

/// Features of the processor that the loader passes to a resolver on aarch64: `__ifunc_arg_t` of
/// `<sys/ifunc.h>`.
#[repr(C)]
struct Features {
    /// Number of bytes of this structure.
    size: u64,
    first: u64,
    second: u64,
}

/// Bit of a resolver's first argument that announces the second argument.
const HAS_FEATURES: u64 = 1 << 62;

impl Features {
    fn read() -> Self {
        // SAFETY: `getauxval` accepts every kind.
        let [first, second] =
            [system::AT_HWCAP, system::AT_HWCAP2].map(|kind| unsafe { system::getauxval(kind) });
        Self {
            size: size_of::<Self>() as u64,
            first,
            second,
        }
    }
}

/// Returns the symbol that defines `name`, from the GNU hash table; `None` if there is none.
///
/// # Safety
/// `tables` belong to a loaded object and have a GNU hash table.
unsafe fn by_gnu_hash(tables: &Tables, name: &str) -> Option<&'static Symbol> {
    let hash = name.bytes().fold(5381_u32, |h, c| {
        h.wrapping_mul(33).wrapping_add(u32::from(c))
    });
    // SAFETY: by contract the object is loaded and has the table. The format gives four words, a
    // filter of 64-bit words, the buckets and the chains. A chain ends with an odd word, and each
    // of its indexes is within the object's tables.
    unsafe {
        let table = tables.gnu_hash;
        let (buckets, first, filter_words) = (*table, *table.add(1), *table.add(2));
        if buckets == 0 {
            return None;
        }
        let heads = table.add(4 + 2 * filter_words as usize);
        let chains = heads.add(buckets as usize);
        let mut index = *heads.add((hash % buckets) as usize);
        let mut hidden = None;
        if index < first {
            return None;
        }
        loop {
            let link = *chains.add((index - first) as usize);
            if link | 1 == hash | 1 {
                match accept(tables, index, name) {
                    Some((symbol, false)) => return Some(symbol),
                    Some((symbol, true)) => hidden = Some(symbol),
                    None => {}
                }
            }
            if link & 1 == 1 {
                return hidden;
            }
            index += 1;
        }
    }
}

/// Returns the symbol that defines `name`, from the System V hash table; `None` if there is none.
///
/// # Safety
/// `tables` belong to a loaded object and have a System V hash table.
unsafe fn by_hash(tables: &Tables, name: &str) -> Option<&'static Symbol> {
    let hash = name.bytes().fold(0_u32, |h, c| {
        let h = (h << 4).wrapping_add(u32::from(c));
        let high = h & 0xf000_0000;
        (h ^ (high >> 24)) & !high
    });
    // SAFETY: by contract the object is loaded and has the table. The format gives two words, the
    // buckets and the chains. A chain ends with zero, and each of its indexes is within the
    // object's tables.
    unsafe {
        let (buckets, chains) = (*tables.hash, tables.hash.add(2 + *tables.hash as usize));
        if buckets == 0 {
            return None;
        }
        let mut index = *tables.hash.add(2 + (hash % buckets) as usize);
        let mut hidden = None;
        while index != 0 {
            match accept(tables, index, name) {
                Some((symbol, false)) => return Some(symbol),
                Some((symbol, true)) => hidden = Some(symbol),
                None => {}
            }
            index = *chains.add(index as usize);
        }
        hidden
    }
}

/// Returns the symbol at `index` if it defines `name` for other objects. Also returns whether only
/// programs that were linked against an old version of the object may use the symbol.
///
/// # Safety
/// `index` is within the tables of a loaded object.
unsafe fn accept(tables: &Tables, index: u32, name: &str) -> Option<(&'static Symbol, bool)> {
    // SAFETY: by contract `index` is within the tables of a loaded object. Names in its string
    // table end with a zero.
    unsafe {
        let symbol = &*tables.symbols.add(index as usize);
        let (binding, kind) = (symbol.info >> 4, symbol.info & 15);
        let exported = matches!(binding, 1 | 2 | 10) && matches!(symbol.other & 3, 0 | 3);
        if symbol.section == 0 || !exported || !matches!(kind, 0 | 2 | INDIRECT_FUNCTION) {
            return None;
        }
        let text = tables.names.add(symbol.name as usize);
        let same = name
            .bytes()
            .enumerate()
            .all(|(place, byte)| *text.add(place) == byte);
        if !same || *text.add(name.len()) != 0 {
            return None;
        }
        let hidden = !tables.versions.is_null()
            && *tables.versions.add(index as usize) & HIDDEN_VERSION != 0;
        Some((symbol, hidden))
    }
}
