//! Reads the records that processes left.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use heapdrome_schema::SystemCalls;

use crate::layout::{
    self, FUNCTIONS, Function, MAGIC, MALLOC, OBJECTS, OwnCalls, PATH_BYTES, Record, SIZES,
    SizeCount,
};

/// Findings on the blocks of one program, if every block was followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Followed {
    /// Maximum number of live bytes at one time.
    pub(crate) peak: u64,
    pub(crate) frees: u64,
    pub(crate) freed_by_others: u64,
    /// Number of timed calls, except interrupted ones.
    pub(crate) timed: u64,
    /// Sum of the ticks that the timed calls took.
    pub(crate) ticks: u64,
    /// Number of ticks that the timing itself adds to each timed call.
    pub(crate) calibration: u64,
    /// System calls that the library made for its own use.
    pub(crate) own: SystemCalls,
    /// Number of blocks and their total bytes, indexed by the number of binary digits of a block's
    /// size.
    pub(crate) sizes: Vec<(u64, u64)>,
}

/// Record of one program of a process, read and validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ledger {
    /// The object whose malloc the loader finds before the counting library's; usually none.
    pub(crate) first_malloc: Option<String>,
    /// The object that receives the calls to malloc.
    pub(crate) malloc_to: Option<String>,
    /// Counts of all calls, one entry for each object that served calls.
    pub(crate) counts: Vec<Counts>,
    /// Whether `operator new` was called.
    pub(crate) operator_new: bool,
    /// Counts of the calls to `operator new`, one entry for each object that served such calls.
    pub(crate) news: Vec<Counts>,
    /// Number of calls to C functions that return memory, regardless of the object that served
    /// them.
    pub(crate) mallocs: u64,
    /// Findings on blocks, if every block was followed.
    pub(crate) followed: Option<Followed>,
    /// Whether the kernel refused to let the program trace a process.
    pub(crate) traces: bool,
}

/// Calls that one object served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The path of the object.
    pub(crate) server: String,
    pub(crate) calls: u64,
    /// The bytes that the calls requested.
    pub(crate) bytes: u64,
}

impl Ledger {
    /// Reads a record and removes it. Returns `None` if there is no valid record. `program` is the
    /// path of the executable, which the record does not contain.
    pub(crate) fn take(record: &Path, program: &Path) -> Option<Self> {
        let bytes = contents(record);
        // If the removal fails, the record is read again only for a later program with the same
        // process ID.
        let _ = std::fs::remove_file(record);
        Self::parse(&bytes?, program)
    }

    fn parse(bytes: &[u8], program: &Path) -> Option<Self> {
        let word = |at: usize| {
            bytes
                .get(at..at + 8)?
                .try_into()
                .ok()
                .map(u64::from_ne_bytes)
        };
        if word(std::mem::offset_of!(Record, magic))? != MAGIC {
            return None;
        }
        let object = |place: u64| named(bytes, place, program);
        let functions = std::mem::offset_of!(Record, functions);
        let mut ledger = Self {
            first_malloc: object(word(std::mem::offset_of!(Record, first_malloc))?),
            ..Self::default()
        };
        for (place, name) in FUNCTIONS.iter().enumerate() {
            let at = functions + place * size_of::<Function>();
            let calls = word(at + std::mem::offset_of!(Function, calls))?;
            let bytes = word(at + std::mem::offset_of!(Function, bytes))?;
            let server = object(word(at + std::mem::offset_of!(Function, object))?);
            if place == MALLOC {
                ledger.malloc_to.clone_from(&server);
            }
            if calls > 0 {
                let server = server.unwrap_or_default();
                ledger.add(
                    name,
                    Counts {
                        server,
                        calls,
                        bytes,
                    },
                );
            }
        }
        ledger.followed = followed(&word)?;
        ledger.traces = word(std::mem::offset_of!(Record, refused_traces))? > 0;
        Some(ledger)
    }

    /// Adds the counts of one function.
    fn add(&mut self, name: &str, counts: Counts) {
        if is_operator_new(name) {
            self.operator_new = true;
            add(&mut self.news, counts.clone());
        } else if takes_memory(name) {
            self.mallocs += counts.calls;
        }
        add(&mut self.counts, counts);
    }

    /// Returns the counts of the allocators. Calls to the C++ runtime are excluded, because the
    /// runtime passes them on to malloc, where they are counted.
    pub(crate) fn of_allocators(&self) -> impl Iterator<Item = &Counts> {
        let counts = self.counts.iter();
        counts.filter(|counts| !is_runtime(&counts.server))
    }
}

/// Returns whether an object is the C++ runtime.
pub(crate) fn is_runtime(path: &str) -> bool {
    let names = ["/libstdc++.so", "/libc++.so"];
    names.iter().any(|name| path.contains(name))
}

/// Adds `more` to the counts of its server.
fn add(counts: &mut Vec<Counts>, more: Counts) {
    let mut known = counts.iter_mut();
    match known.find(|known| known.server == more.server) {
        Some(known) => {
            known.calls += more.calls;
            known.bytes += more.bytes;
        }
        None => counts.push(more),
    }
}

/// Returns whether a function is a C function that returns memory.
pub(crate) fn takes_memory(name: &str) -> bool {
    !name.starts_with("_Z") && !name.contains("free") && name != "malloc_usable_size"
}

/// Returns the path of an object in a record. `place` is the object's index plus one. Returns
/// `None` if `place` is 0 or the record lacks the object. An empty path stands for `program`.
fn named(bytes: &[u8], place: u64, program: &Path) -> Option<String> {
    let place = usize::try_from(place).ok()?.checked_sub(1);
    let place = place.filter(|&at| at < OBJECTS)?;
    let start = std::mem::offset_of!(Record, objects) + place * PATH_BYTES;
    let path = bytes.get(start..start + PATH_BYTES)?;
    let text = path.split(|&byte| byte == 0).next()?;
    Some(resolved(match text.is_empty() {
        true => program.to_string_lossy().into_owned(),
        false => String::from_utf8_lossy(text).into_owned(),
    }))
}

/// Returns whether a function is a form of `operator new`, by its mangled name.
fn is_operator_new(name: &str) -> bool {
    name.starts_with("_Znw") || name.starts_with("_Zna")
}

/// Returns a record's findings on blocks. The inner value is `None` if blocks were not followed,
/// the outer one if the record is too short. `word` returns the word at an offset of the record.
fn followed(word: &impl Fn(usize) -> Option<u64>) -> Option<Option<Followed>> {
    use std::mem::offset_of;
    let start = offset_of!(Record, followed);
    let at = |place: usize| word(start + place);
    let own = |place: usize| at(offset_of!(layout::Followed, own) + place);
    let sizes = start + offset_of!(layout::Followed, sizes);
    let size = |place: usize| {
        let place = sizes + place * size_of::<SizeCount>();
        let blocks = word(place + offset_of!(SizeCount, blocks))?;
        Some((blocks, word(place + offset_of!(SizeCount, bytes))?))
    };
    let sizes: Option<Vec<_>> = (0..SIZES).map(size).collect();
    let followed = Followed {
        peak: at(offset_of!(layout::Followed, peak))?,
        frees: at(offset_of!(layout::Followed, frees))?,
        freed_by_others: at(offset_of!(layout::Followed, freed_by_others))?,
        timed: at(offset_of!(layout::Followed, timed))?,
        ticks: at(offset_of!(layout::Followed, ticks))?,
        calibration: at(offset_of!(layout::Followed, calibration))?,
        own: SystemCalls {
            mmap: own(offset_of!(OwnCalls, mmap))?,
            munmap: own(offset_of!(OwnCalls, munmap))?,
            madvise: own(offset_of!(OwnCalls, madvise))?,
            ..SystemCalls::default()
        },
        sizes: sizes?,
    };
    Some((followed.calibration > 0).then_some(followed))
}

/// Opens a record, without following links or waiting for the writer of a pipe. Returns `None` on
/// failure, or if it is not a regular file. If root runs the witness, every user can create files
/// in its folder, so the path may name a link or a pipe.
pub(crate) fn open(record: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true);
    let options = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(record).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Reads the bytes of a record, up to its expected length; `None` on failure.
fn contents(record: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = open(record)?.take(size_of::<Record>() as u64);
    limited.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns a path without symbolic links, so that each object has one name.
pub(crate) fn resolved(path: String) -> String {
    match Path::new(&path).canonicalize() {
        Ok(real) => real.to_string_lossy().into_owned(),
        Err(_) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_or_foreign_is_no_record() {
        let program = Path::new("/no/such/program");
        let mut bytes = vec![0_u8; size_of::<Record>()];
        assert_eq!(Ledger::parse(&bytes, program), None);
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        assert_eq!(Ledger::parse(&bytes, program), Some(Ledger::default()));
        assert_eq!(Ledger::parse(&bytes[..100], program), None);
        assert_eq!(Ledger::parse(&[], program), None);
    }

    #[test]
    fn only_a_plain_file_is_a_record_and_only_its_beginning_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let program = Path::new("/no/such/program");
        let mut bytes = vec![0_u8; size_of::<Record>()];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        std::fs::write(path("1"), &bytes).expect("the folder is ours");
        std::os::unix::fs::symlink(path("1"), path("2")).expect("the folder is ours");
        assert_eq!(Ledger::take(&path("2"), program), None);
        assert!(!path("2").is_symlink() && path("1").exists());
        let pipe = std::ffi::CString::new(path("3").to_string_lossy().into_owned());
        let pipe = pipe.expect("a path without zeros");
        // SAFETY: `pipe` is a C string, which ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let mut filled = std::fs::File::options();
        let filled = filled.read(true).write(true).open(path("3"));
        let mut filled = filled.expect("a pipe that is open both ways does not wait");
        std::io::Write::write_all(&mut filled, &bytes).expect("a pipe holds more than a record");
        assert_eq!(Ledger::take(&path("3"), program), None);
        assert!(!path("3").exists());
        // Reading this file to its end would exhaust memory.
        let endless = std::fs::File::options().write(true).open(path("1"));
        let endless = endless.expect("it is ours");
        endless.set_len(1 << 40).expect("it stays empty");
        assert_eq!(
            contents(&path("1")).map(|read| read.len()),
            Some(bytes.len())
        );
        let taken = Ledger::take(&path("1"), program);
        assert_eq!(taken, Some(Ledger::default()));
        assert!(!path("1").exists());
    }

    #[test]
    fn calls_and_bytes_are_added_up_by_object() {
        let mut bytes = vec![0_u8; size_of::<Record>()];
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(0, MAGIC);
        let functions = std::mem::offset_of!(Record, functions);
        for place in 0..3 {
            let function = functions + place * size_of::<Function>();
            put(function + std::mem::offset_of!(Function, calls), 10);
            put(function + std::mem::offset_of!(Function, bytes), 500);
            let object = 1 + (place as u64) % 2;
            put(function + std::mem::offset_of!(Function, object), object);
        }
        let objects = std::mem::offset_of!(Record, objects);
        bytes[objects..objects + 5].copy_from_slice(b"/a.so");
        let ledger = Ledger::parse(&bytes, Path::new("/no/such/program")).expect("a record");
        assert_eq!(ledger.malloc_to.as_deref(), Some("/a.so"));
        let counts = |server: &str, calls, bytes| Counts {
            server: server.to_owned(),
            calls,
            bytes,
        };
        let expected = [
            counts("/a.so", 20, 1000),
            counts("/no/such/program", 10, 500),
        ];
        assert_eq!(ledger.counts, expected);
    }
}
