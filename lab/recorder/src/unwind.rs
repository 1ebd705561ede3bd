//! Unwinds the stacks of one process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use framehop::{
    CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative,
};
use heapdrome_trace::{Frame, Stack, TraceError, Writer};
use heapdrome_witness::stack_ring::{LAST_MAPS, MAPS_END, MAPS_PREFIX};
use rustc_hash::FxHashMap;

use crate::known::{Known, Unwound};
use crate::mappings::{self, Mapping};
use crate::module::{Bytes, CodeFile};
use crate::pace::FullestStacks;
use crate::process;
use crate::snapshots::Snapshot;
use crate::stacks::Stacks;

/// Minimum time between two readings of a process's mappings after a reading that found no new
/// code.
const FRESH: Duration = Duration::from_millis(500);

/// Maximum number of readings of the mappings for one stack. The first stack may need two: the list
/// that the process saved, and then the current mappings. A process that compiles code may have new
/// mappings at every reading, so the number must be limited.
const READINGS: usize = 2;

/// Sources of the mappings of a process whose stacks are recorded.
struct Origin {
    /// ID of the process, if it is in the recorder's PID namespace.
    pid: Option<u32>,
    /// File to which the process wrote a list of its mappings at its first stack.
    maps: PathBuf,
    /// File to which the process wrote a list of its mappings when it exited. Missing if it was
    /// killed.
    last_maps: PathBuf,
    /// Path of the recording library, whose frames are removed from stacks.
    library: PathBuf,
    /// Function that reads the current mappings of a running process.
    present_maps: fn(u32) -> Option<String>,
}

/// State that the unwinders of all processes share.
pub(crate) struct Unwindings {
    folder: PathBuf,
    library: PathBuf,
    stacks: Arc<Mutex<Stacks>>,
    fullest: FullestStacks,
}

impl Unwindings {
    /// Creates the state. `folder` contains the recording library, and the files that the processes
    /// create.
    pub(crate) fn new(folder: &Path, library: &Path, fullest: FullestStacks) -> Self {
        Self {
            folder: folder.to_owned(),
            library: library.to_owned(),
            stacks: Arc::default(),
            fullest,
        }
    }

    /// Starts unwinding for a program of a process. `is_known_here` states whether `pid` is valid
    /// in the recorder's PID namespace.
    pub(crate) fn begin(&self, pid: u32, image: u64, is_known_here: bool) -> Unwinding {
        let origin = Origin {
            pid: is_known_here.then_some(pid),
            maps: self.folder.join(format!("{MAPS_PREFIX}{pid}-{image}")),
            last_maps: self
                .folder
                .join(format!("{MAPS_PREFIX}{pid}-{image}-{LAST_MAPS}")),
            library: self.library.clone(),
            present_maps: process::maps,
        };
        Unwinding::new(origin, Arc::clone(&self.stacks), self.fullest.clone())
    }
}

/// The code of a mapping.
struct Code {
    mapping: Mapping,
    /// The mapped file, and the difference between addresses in memory and in the file.
    file: Option<(Arc<CodeFile>, u64)>,
    /// Number of the code's module in the trace, once a stack refers to it.
    module: Option<u32>,
}

/// Unwinder of the stacks of one process.
pub(crate) struct Unwinding {
    origin: Origin,
    stacks: Arc<Mutex<Stacks>>,
    text: String,
    /// The mappings of code that `text` lists.
    mappings: Vec<Mapping>,
    code: Vec<Code>,
    /// Time of the last reading of the mappings that found no new code.
    quiet: Option<Instant>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    known: Known,
    /// Numbers of stacks. The addresses of the calls are the key.
    numbers: FxHashMap<Vec<u64>, u32>,
    /// Whether the last reading returned the current mappings of the running process.
    is_current: bool,
    /// Number of stacks with a frame whose file is unknown.
    pub unplaced: u64,
    /// Fullness of the rings of stacks, for the drainer.
    pub fullest: FullestStacks,
}

impl Unwinding {
    fn new(origin: Origin, stacks: Arc<Mutex<Stacks>>, fullest: FullestStacks) -> Self {
        Self {
            origin,
            stacks,
            text: String::new(),
            mappings: Vec::new(),
            code: Vec::new(),
            quiet: None,
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            known: Known::default(),
            numbers: FxHashMap::default(),
            is_current: false,
            unplaced: 0,
            fullest,
        }
    }

    /// Unwinds a stack, and returns its number in the trace.
    pub(crate) fn unwind<W: Write>(
        &mut self,
        snapshot: Snapshot<'_>,
        writer: &mut Writer<W>,
    ) -> Result<u32, TraceError> {
        if let Some(stack) = self.known.find(snapshot) {
            return Ok(stack);
        }
        let (mut addresses, mut reads) = self.addresses(snapshot);
        for _ in 0..READINGS {
            if self.first_unknown(&addresses).is_none() || !self.read_mappings() {
                break;
            }
            (addresses, reads) = self.addresses(snapshot);
        }
        if let Some(place) = self.first_unknown(&addresses) {
            if self.is_current {
                // The mappings are current and contain no code at this address, so the unwinder has
                // found a wrong frame.
                addresses.truncate(place);
            } else {
                self.unplaced += 1;
            }
        }
        let stack = match self.numbers.get(&addresses) {
            Some(&stack) => stack,
            None => {
                let frames = self.frames(&addresses, writer)?;
                let stack = self.table().stack(frames, writer)?;
                self.numbers.insert(addresses, stack);
                stack
            }
        };
        self.known.add(snapshot, Unwound { reads, stack });
        Ok(stack)
    }

    /// Returns the index of the first address that is in no known mapping of code.
    fn first_unknown(&self, addresses: &[u64]) -> Option<usize> {
        let is_unknown = |&address: &u64| find(&self.code, address).is_none();
        addresses.iter().position(is_unknown)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses of the calls, innermost first, and the words of the stack that the
    /// unwinder read to find them.
    fn addresses(&mut self, snapshot: Snapshot<'_>) -> (Vec<u64>, Vec<(u64, Option<u64>)>) {
        let (mut addresses, mut reads) = (Vec::new(), Vec::new());
        let mut registers = registers(snapshot);
        let mut next = Some(snapshot.return_address);
        let mut read = |address| {
            let word = snapshot.read(address);
            reads.push((address, word));
            word.ok_or(())
        };
        // Allow for the recording library's own frames: they are removed from the stack, and do not
        // count towards `MAX_FRAMES`.
        let limit = Stack::MAX_FRAMES + OWN_FRAMES;
        while let Some(address) = next.and_then(FrameAddress::from_return_address)
            && addresses.len() < limit
        {
            addresses.push(address.address_for_lookup());
            let (unwinder, cache) = (&self.unwinder, &mut self.cache);
            let unwound = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
            // An error means that the copied stack ends here, or that the unwinder cannot find the
            // caller.
            next = unwound.ok().flatten();
        }
        (addresses, reads)
    }

    /// Returns the frames of the call addresses, without the recording library's frames at the
    /// inner end.
    fn frames<W: Write>(
        &mut self,
        addresses: &[u64],
        writer: &mut Writer<W>,
    ) -> Result<Vec<Frame>, TraceError> {
        let mut frames = Vec::new();
        for &address in addresses {
            let place = find(&self.code, address);
            let code = place.map(|place| &self.code[place]);
            let name = code.and_then(|code| code.mapping.file.as_ref());
            let is_own = name.is_some_and(|name| name.path == self.origin.library);
            if is_own && frames.is_empty() {
                continue;
            }
            let bias = code.and_then(|code| Some(code.file.as_ref()?.1));
            let module = place.map(|place| self.module(place, writer)).transpose()?;
            frames.push(Frame {
                module: module.flatten(),
                address: address.wrapping_sub(bias.unwrap_or(0)),
            });
        }
        frames.truncate(Stack::MAX_FRAMES);
        Ok(frames)
    }

    /// Returns the module of the code at `place`, and writes the module to the trace if it is new.
    /// Returns `None` if the code's file is unknown.
    fn module<W: Write>(
        &mut self,
        place: usize,
        writer: &mut Writer<W>,
    ) -> Result<Option<u32>, TraceError> {
        let code = &self.code[place];
        if let (None, Some((file, _))) = (code.module, &code.file) {
            let module = self.table().module(file, writer)?;
            self.code[place].module = Some(module);
        }
        Ok(self.code[place].module)
    }

    /// Stores new mappings of the running process. Ignores them before the first stack, because
    /// they are not needed yet, and may belong to the previous program of the process.
    pub(crate) fn add_mappings(&mut self, text: String) {
        if self.text.is_empty() {
            return;
        }
        if text != self.text && self.is_of_same_program(&text) {
            self.replace_text(text);
        }
    }

    /// Reads the mappings of the process, and returns whether there was new code. Reads nothing
    /// within [`FRESH`] after a reading that found no new code.
    fn read_mappings(&mut self) -> bool {
        if self.quiet.is_some_and(|since| since.elapsed() < FRESH) {
            return false;
        }
        let running = self.origin.pid.and_then(self.origin.present_maps);
        let running = running.filter(|text| self.text.is_empty() || self.is_of_same_program(text));
        // Prefer a list that the process saved itself, because that list certainly belongs to this
        // program.
        let own = match (self.text.is_empty(), running.is_some()) {
            (true, _) => written_maps(&self.origin.maps),
            (false, false) => written_maps(&self.origin.last_maps),
            (false, true) => None,
        };
        self.is_current = own.is_none() && running.is_some();
        let text = own.or(running).filter(|text| *text != self.text);
        let is_new = text.is_some_and(|text| self.replace_text(text));
        if !is_new {
            self.quiet = Some(Instant::now());
        }
        is_new
    }

    /// Replaces the mappings, and returns whether the mappings of code differ. Mappings of data do
    /// not count, because they change often, for example when a heap grows.
    fn replace_text(&mut self, text: String) -> bool {
        let mappings = mappings::parse(&text);
        self.text = text;
        if mappings == self.mappings {
            return false;
        }
        self.mappings = mappings;
        self.place_code();
        true
    }

    /// Returns whether `text` belongs to the same program as the present mappings. It does if the
    /// recording library is mapped at an unchanged address.
    fn is_of_same_program(&self, text: &str) -> bool {
        let library = self.origin.library.to_string_lossy();
        let line = |text: &str| {
            let line = text.lines().find(|line| line.ends_with(&*library));
            line.map(str::to_owned)
        };
        line(text) == line(&self.text)
    }

    /// Passes the code of the process to the unwinder. Keeps code that is no longer mapped, unless
    /// a new mapping overlaps it, because stacks recorded earlier may refer to it.
    fn place_code(&mut self) {
        self.known = Known::default();
        self.numbers.clear();
        self.unwinder = UnwinderNative::new();
        let mappings = self.mappings.clone();
        let is_replaced = |old: &Mapping| {
            let mut overlaps = mappings.iter();
            overlaps.any(|new| new.start < old.end && old.start < new.end)
        };
        self.code.retain(|code| !is_replaced(&code.mapping));
        for mapping in mappings {
            let name = mapping.file.as_ref();
            let file = name.and_then(|name| self.table().file(name, self.origin.pid));
            let file = file.and_then(|file| file.bias(&mapping).map(|bias| (file, bias)));
            self.code.push(Code {
                mapping,
                file,
                module: None,
            });
        }
        self.code.sort_by_key(|code| code.mapping.start);
        for code in &self.code {
            if let Some((file, bias)) = &code.file {
                self.unwinder.add_module(file.module(&code.mapping, *bias));
            }
        }
    }
}

/// Reads the list of mappings that the recorded process saved to `path`. Returns `None` if the list
/// is missing, empty or lacks its end mark.
fn written_maps(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.strip_suffix(MAPS_END)?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Maximum number of frames of the recording library at the inner end of a stack.
const OWN_FRAMES: usize = 4;

/// Returns the index of the code that contains an address.
fn find(code: &[Code], address: u64) -> Option<usize> {
    let behind = code.partition_point(|code| code.mapping.start <= address);
    let place = behind.checked_sub(1)?;
    (address < code[place].mapping.end).then_some(place)
}

#[cfg(target_arch = "x86_64")]
fn registers(snapshot: Snapshot<'_>) -> UnwindRegsNative {
    let (pointer, frame) = (snapshot.stack_pointer, snapshot.frame_pointer);
    UnwindRegsNative::new(snapshot.return_address, pointer, frame)
}

#[cfg(target_arch = "aarch64")]
fn registers(snapshot: Snapshot<'_>) -> UnwindRegsNative {
    let (pointer, frame) = (snapshot.stack_pointer, snapshot.frame_pointer);
    // Programs have 48 bits of address space; a return address may be signed in the bits above.
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address((1 << 48) - 1);
    UnwindRegsNative::new_with_ptr_auth_mask(mask, snapshot.return_address, pointer, frame)
}

#[cfg(test)]
mod tests;
