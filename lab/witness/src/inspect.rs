//! Reads from a process's memory which objects receive its calls to malloc.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::layout::{FUNCTIONS, MALLOC};
use crate::objects::{Object, Objects, Segment};

/// Pair of loaded objects: a call from `from` to a function that allocates reaches the definition
/// in `to` directly, so the counting library does not see it. Wrappers of malloc, such as the C++
/// runtime's `operator new`, form no lead.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lead {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
}

/// Findings from a process's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inspection {
    /// Whether the counting library is loaded.
    pub(crate) entered: bool,
    /// Pairs of objects between which calls bypass the counting library, each once.
    pub(crate) leads: Vec<Lead>,
    /// Files whose code is loaded.
    pub(crate) loaded: Vec<PathBuf>,
}

struct Loaded {
    path: PathBuf,
    base: u64,
    object: Arc<Object>,
}

struct Range {
    start: u64,
    end: u64,
    path: PathBuf,
}

struct Mapped {
    offset: u64,
    executable: bool,
    range: Range,
}

/// Inspects a process that is stopped or running. Returns `None` if `/proc/PID/maps` cannot be read
/// or names no file, for example because the process has ended.
pub(crate) fn inspect(pid: i32, library: &Path, objects: &Objects) -> Option<Inspection> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    let mapped: Vec<Mapped> = maps
        .split(|&byte| byte == b'\n')
        .filter_map(mapping)
        .collect();
    if mapped.is_empty() {
        return None;
    }
    let objects = loaded_objects(&mapped, objects);
    let mut loaded: Vec<PathBuf> = objects.iter().map(|object| object.path.clone()).collect();
    loaded.dedup();
    let entered = loaded.iter().any(|path| path == library);
    let mut leads = Vec::new();
    for call in bound_calls(pid, &objects, library) {
        let range = mapped
            .iter()
            .map(|map| &map.range)
            .find(|range| contains(range, call.target));
        let Some(lead) = range.and_then(|range| lead(&call, range, &objects, library)) else {
            continue;
        };
        if !leads.contains(&lead) {
            leads.push(lead);
        }
    }
    Some(Inspection {
        entered,
        leads,
        loaded,
    })
}

/// Returns the loaded objects. Linkers and compilers also map object files as data, so a file
/// counts as loaded only if its first segment and its code are mapped at matching addresses.
fn loaded_objects(mapped: &[Mapped], objects: &Objects) -> Vec<Loaded> {
    let first_segment = |map: &Mapped| {
        let object = objects.get(&map.range.path)?;
        let (offset, address) = object.first_segment;
        let base = map.range.start.wrapping_sub(page(address));
        let is_code = |other: &Mapped| {
            let mut code = object.code.iter();
            other.executable
                && other.range.path == map.range.path
                && code.any(|segment| maps(other, segment, base))
        };
        (map.offset == page(offset) && mapped.iter().any(is_code)).then(|| Loaded {
            path: map.range.path.clone(),
            base,
            object,
        })
    };
    mapped.iter().filter_map(first_segment).collect()
}

/// Returns whether a mapping is part of a segment of the object that is loaded at `base`. The
/// mapping need not be the whole segment, because some programs move their code to huge pages.
fn maps(map: &Mapped, segment: &Segment, base: u64) -> bool {
    let start = base.wrapping_add(segment.address);
    let end = start.wrapping_add(segment.length);
    // The loader rounds the start and the offset down by equal amounts, for any page size.
    let moved = map.range.start.wrapping_sub(map.offset);
    map.range.start < end && start < map.range.end && moved == start.wrapping_sub(segment.offset)
}

/// Returns the difference between a program's addresses in memory and in its file. Returns `None`
/// if its first segment is not mapped, or the mappings cannot be read.
pub(crate) fn base(pid: i32, path: &Path, object: &Object) -> Option<u64> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    let (offset, address) = object.first_segment;
    let mut mapped = maps.split(|&byte| byte == b'\n').filter_map(mapping);
    let first = mapped.find(|map| map.range.path == path && map.offset == page(offset))?;
    Some(first.range.start.wrapping_sub(page(address)))
}

/// Slot of a loaded object, with the address that the slot contains.
struct Call<'a> {
    from: &'a Loaded,
    function: usize,
    target: u64,
}

/// Returns the slots through which objects, except the counting library, call functions that
/// allocate. A slot that cannot be read contains 0.
fn bound_calls<'a>(pid: i32, objects: &'a [Loaded], library: &Path) -> Vec<Call<'a>> {
    let mut calls: Vec<Call> = objects
        .iter()
        .filter(|from| from.path != library)
        .flat_map(|from| {
            let slots = from
                .object
                .slots
                .iter()
                .filter(|slot| allocates(slot.function));
            slots.map(move |slot| {
                let target = from.base.wrapping_add(slot.address);
                Call {
                    from,
                    function: slot.function,
                    target,
                }
            })
        })
        .collect();
    let held = read_words(pid, calls.iter().map(|call| call.target));
    for (call, held) in calls.iter_mut().zip(held) {
        call.target = held;
    }
    calls
}

/// Returns the lead of a call whose target is in `range`. Returns `None` if the target is not a
/// definition of the function, belongs to the counting library, or is a wrapper of malloc.
fn lead(call: &Call, range: &Range, objects: &[Loaded], library: &Path) -> Option<Lead> {
    // The path alone does not identify an object, because a file may be loaded several times, in
    // separate namespaces. A target that is not a definition is ignored, because its slot was never
    // bound.
    let target = objects.iter().find(|object| {
        let address = call.target.wrapping_sub(object.base);
        object.path == range.path && object.object.defines_at(call.function, address)
    })?;
    // The C++ runtime's operators and libbsd's reallocarray call malloc themselves. The slots for
    // those calls are judged separately.
    let is_wrapper = is_cxx(call.function) || !target.object.defines(MALLOC);
    let passes_on = is_wrapper && target.object.calls(MALLOC);
    let counts = !passes_on && target.path != library;
    counts.then(|| Lead {
        from: call.from.path.clone(),
        to: target.path.clone(),
    })
}

fn is_cxx(function: usize) -> bool {
    FUNCTIONS[function].starts_with("_Z")
}

fn allocates(function: usize) -> bool {
    let name = FUNCTIONS[function];
    !name.contains("free") && !name.starts_with("_Zd") && name != "malloc_usable_size"
}

fn page(address: u64) -> u64 {
    address & !4095
}

fn contains(range: &Range, address: u64) -> bool {
    (range.start..range.end).contains(&address)
}

/// Parses a line of `/proc/PID/maps`. Returns `None` if it maps no file.
fn mapping(line: &[u8]) -> Option<Mapped> {
    let slash = line.iter().position(|&byte| byte == b'/')?;
    let path = &line[slash..];
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let head = std::str::from_utf8(&line[..slash]).ok()?;
    let mut fields = head.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let executable = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(fields.next()?)?;
    let path = PathBuf::from(OsStr::from_bytes(path));
    Some(Mapped {
        offset,
        executable,
        range: Range {
            start: number(start)?,
            end: number(end)?,
            path,
        },
    })
}

/// Maximum number of words that one `process_vm_readv` reads. The kernel's own limit is 1024.
const AT_ONCE: usize = 512;

/// Reads the words at `addresses`. A word that cannot be read is 0.
fn read_words(pid: i32, addresses: impl Iterator<Item = u64>) -> Vec<u64> {
    let remote: Vec<libc::iovec> = addresses
        .map(|address| libc::iovec {
            iov_base: address as *mut _,
            iov_len: size_of::<u64>(),
        })
        .collect();
    let mut words = vec![0_u64; remote.len()];
    let mut place = 0;
    while place < remote.len() {
        let part = &remote[place..remote.len().min(place + AT_ONCE)];
        let local = libc::iovec {
            iov_base: words[place..].as_mut_ptr().cast(),
            iov_len: part.len() * size_of::<u64>(),
        };
        // SAFETY: `local` covers one word of `words`, from `place` on, for each address in `part`.
        // No other code uses these words during the call.
        let read =
            unsafe { libc::process_vm_readv(pid, &local, 1, part.as_ptr(), part.len() as u64, 0) };
        let read = match usize::try_from(read) {
            Ok(bytes) => bytes / size_of::<u64>(),
            Err(_) if bad_address() => 0,
            // The process is gone or inaccessible.
            Err(_) => break,
        };
        place += read;
        if read < part.len() {
            // The kernel stops at the first address that it cannot read, possibly after part of a
            // word.
            words[place] = 0;
            place += 1;
        }
    }
    words
}

fn bad_address() -> bool {
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

#[cfg(test)]
mod tests;
