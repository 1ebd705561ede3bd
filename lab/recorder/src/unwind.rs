//! Unwinds the stacks of one process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use framehop::{
    CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative,
};
use heapdrome_trace::{Frame, Stack, TraceError, Writer};
use heapdrome_witness::stack_ring::MAPS_PREFIX;
use rustc_hash::FxHashMap;

use crate::mappings::{self, Mapping};
use crate::module::{Bytes, CodeFile};
use crate::snapshots::Snapshot;
use crate::stacks::Stacks;

/// Minimum time between two readings of a process's mappings if nothing is new. A file that takes
/// another one's place in memory is seen after twice as long.
const FRESH: Duration = Duration::from_millis(500);

/// Number of places on stacks whose unwinding is remembered.
const REMEMBERED: usize = 1 << 16;

/// A process whose stacks are recorded.
struct Origin {
    /// Its number, if it is known here by that.
    pid: Option<u32>,
    /// The file with the mappings that it wrote itself.
    maps: PathBuf,
    /// The recording library, whose frames are left out.
    library: PathBuf,
}

/// What the stacks of all processes share.
pub(crate) struct Unwindings {
    is_on: bool,
    folder: PathBuf,
    library: PathBuf,
    stacks: Arc<Mutex<Stacks>>,
}

impl Unwindings {
    /// `folder` is that of the files that the processes make, and of the recording library.
    pub(crate) fn new(is_on: bool, folder: &Path, library: &Path) -> Self {
        Self {
            is_on,
            folder: folder.to_owned(),
            library: library.to_owned(),
            stacks: Arc::default(),
        }
    }

    /// Begins with a program of a process; `None` if no stacks are recorded. `is_known_here` says
    /// whether the system knows the process here by its number.
    pub(crate) fn begin(&self, pid: u32, image: u64, is_known_here: bool) -> Option<Unwinding> {
        let origin = Origin {
            pid: is_known_here.then_some(pid),
            maps: self.folder.join(format!("{MAPS_PREFIX}{pid}-{image}")),
            library: self.library.clone(),
        };
        self.is_on
            .then(|| Unwinding::new(origin, Arc::clone(&self.stacks)))
    }
}

/// The code of a mapping.
struct Code {
    mapping: Mapping,
    /// Its file, and the difference between addresses in memory and in the file.
    file: Option<(Arc<CodeFile>, u64)>,
}

/// A stack that was unwound, and all that its unwinding depended on besides the registers.
struct Unwound {
    /// Addresses that were read, and the words there; `None` if they were not copied.
    reads: Vec<(u64, Option<u64>)>,
    stack: u32,
}

/// Unwinds the stacks of one process.
pub(crate) struct Unwinding {
    origin: Origin,
    stacks: Arc<Mutex<Stacks>>,
    text: String,
    code: Vec<Code>,
    read_at: Option<Instant>,
    /// When the mappings were last found as they were before.
    quiet: Option<Instant>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    known: FxHashMap<[u64; 3], Vec<Unwound>>,
    /// Number of stacks with a frame whose file is not known.
    pub unplaced: u64,
}

impl Unwinding {
    fn new(origin: Origin, stacks: Arc<Mutex<Stacks>>) -> Self {
        Self {
            origin,
            stacks,
            text: String::new(),
            code: Vec::new(),
            read_at: None,
            quiet: None,
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            known: FxHashMap::default(),
            unplaced: 0,
        }
    }

    /// Unwinds a stack, and returns its number in the trace.
    pub(crate) fn unwind<W: Write>(
        &mut self,
        snapshot: Snapshot<'_>,
        writer: &mut Writer<W>,
    ) -> Result<u32, TraceError> {
        if self.read_at.is_none_or(|at| at.elapsed() > 2 * FRESH) {
            self.read_mappings();
        }
        let place = [
            snapshot.return_address,
            snapshot.stack_pointer,
            snapshot.frame_pointer,
        ];
        let is_same = |unwound: &&Unwound| {
            let mut reads = unwound.reads.iter();
            reads.all(|&(address, word)| snapshot.read(address) == word)
        };
        let known = self.known.get(&place).into_iter().flatten().find(is_same);
        if let Some(known) = known {
            return Ok(known.stack);
        }
        let (mut addresses, mut reads) = self.addresses(snapshot);
        let is_unknown = |code: &[Code], address: &u64| find(code, *address).is_none();
        if addresses.iter().any(|it| is_unknown(&self.code, it)) && self.read_mappings() {
            (addresses, reads) = self.addresses(snapshot);
        }
        self.unplaced += u64::from(addresses.iter().any(|it| is_unknown(&self.code, it)));
        let frames = self.frames(&addresses, writer)?;
        let stack = self.table().stack(frames, writer)?;
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known
            .entry(place)
            .or_default()
            .push(Unwound { reads, stack });
        Ok(stack)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of the calls, innermost first, and the words that they were found by.
    fn addresses(&mut self, snapshot: Snapshot<'_>) -> (Vec<u64>, Vec<(u64, Option<u64>)>) {
        let (mut addresses, mut reads) = (Vec::new(), Vec::new());
        let mut registers = registers(snapshot);
        let mut next = Some(snapshot.return_address);
        let mut read = |address| {
            let word = snapshot.read(address);
            reads.push((address, word));
            word.ok_or(())
        };
        // The library's own frames are left out, and are more.
        let limit = Stack::MAX_FRAMES + OWN_FRAMES;
        while let Some(address) = next.and_then(FrameAddress::from_return_address)
            && addresses.len() < limit
        {
            addresses.push(address.address_for_lookup());
            let (unwinder, cache) = (&self.unwinder, &mut self.cache);
            let unwound = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
            // An error is the end of the copy, or of all that is known of the stack.
            next = unwound.ok().flatten();
        }
        (addresses, reads)
    }

    fn frames<W: Write>(
        &self,
        addresses: &[u64],
        writer: &mut Writer<W>,
    ) -> Result<Vec<Frame>, TraceError> {
        let is_own = |code: &Code| {
            let name = code.mapping.file.as_ref();
            name.is_some_and(|name| name.path == self.origin.library)
        };
        let located = addresses
            .iter()
            .map(|&address| (address, find(&self.code, address)));
        let callers = located.skip_while(|(_, code)| code.is_some_and(is_own));
        let mut table = self.table();
        callers
            .take(Stack::MAX_FRAMES)
            .map(
                |(address, code)| match code.and_then(|code| code.file.as_ref()) {
                    Some((file, bias)) => Ok(Frame {
                        module: Some(table.module(file, writer)?),
                        address: address.wrapping_sub(*bias),
                    }),
                    None => Ok(Frame {
                        module: None,
                        address,
                    }),
                },
            )
            .collect()
    }

    /// Reads the mappings of the process, and returns whether there was anything new.
    fn read_mappings(&mut self) -> bool {
        if self.quiet.is_some_and(|since| since.elapsed() < FRESH) {
            return false;
        }
        self.read_at = Some(Instant::now());
        let of_process = || {
            let pid = self.origin.pid?;
            read(Path::new(&format!("/proc/{pid}/maps")))
        };
        // Those that it has written itself are of this program for certain.
        let text = match self.text.is_empty() {
            true => read(&self.origin.maps).or_else(of_process),
            false => of_process().filter(|text| self.is_of_same_program(text)),
        };
        let Some(text) = text.filter(|text| *text != self.text) else {
            self.quiet = self.read_at;
            return false;
        };
        self.text = text;
        self.place_code();
        true
    }

    /// Whether a process has not executed another program: the recording library lies where it lay.
    fn is_of_same_program(&self, text: &str) -> bool {
        let library = self.origin.library.to_string_lossy();
        let line = |text: &str| {
            let line = text.lines().find(|line| line.ends_with(&*library));
            line.map(str::to_owned)
        };
        line(text) == line(&self.text)
    }

    /// Describes the code of the process to the unwinder.
    fn place_code(&mut self) {
        self.known.clear();
        self.unwinder = UnwinderNative::new();
        self.code.clear();
        for mapping in mappings::parse(&self.text) {
            let name = mapping.file.as_ref();
            let file = name.and_then(|name| self.table().file(name, self.origin.pid));
            let file = file.and_then(|file| file.bias(&mapping).map(|bias| (file, bias)));
            if let Some((file, bias)) = &file {
                self.unwinder.add_module(file.module(&mapping, *bias));
            }
            self.code.push(Code { mapping, file });
        }
    }
}

/// A text that is not empty: that of a process that has ended is.
fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Maximum number of frames of the recording library at the inner end of a stack.
const OWN_FRAMES: usize = 4;

/// The code at an address.
fn find(code: &[Code], address: u64) -> Option<&Code> {
    let behind = code.partition_point(|code| code.mapping.start <= address);
    let code = code.get(behind.checked_sub(1)?)?;
    (address < code.mapping.end).then_some(code)
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
