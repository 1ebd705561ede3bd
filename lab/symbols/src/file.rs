//! Finds files of code on this machine, and the separate files with their debug information.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use heapdrome_trace::Module;
use object::Object as _;

use crate::places::Trouble;

/// Maximum size of a file that is read into memory, in bytes.
const LARGEST: u64 = 4 << 30;

/// Contents of a module's file of code and of its file of debug information. At least one of the
/// two is present.
pub(crate) struct Files {
    pub code: Option<Vec<u8>>,
    pub debug: Option<Vec<u8>>,
    /// Debug information that several modules share (`.gnu_debugaltlink`).
    pub shared: Option<Vec<u8>>,
}

impl Files {
    /// Reads the file of a module and, if installed, the file with its debug information.
    pub(crate) fn find(module: &Module, debug: &Path) -> Result<Self, Trouble> {
        let path = installed(&module.build_id, debug);
        let separate = path.as_deref().and_then(|path| {
            let bytes = read(path).ok()?;
            (build_id(&bytes).ok()? == module.build_id).then_some(bytes)
        });
        let code = own(module);
        let shared = separate.as_deref().zip(path.as_deref());
        let shared = shared.and_then(|(bytes, path)| shared_by(bytes, path));
        match (code, separate) {
            (Err(trouble), None) => Err(trouble),
            (code, debug) => Ok(Self {
                code: code.ok(),
                debug,
                shared,
            }),
        }
    }
}

/// Returns the content of the file at the path of a module, unless its build differs from the
/// recorded one. If no build id was recorded, accepts any build.
fn own(module: &Module) -> Result<Vec<u8>, Trouble> {
    let bytes = read(Path::new(&module.path)).map_err(Trouble::Unreadable)?;
    let found = build_id(&bytes)?;
    if !module.build_id.is_empty() && found != module.build_id {
        return Err(Trouble::OtherBuild {
            found,
            recorded: module.build_id.clone(),
        });
    }
    Ok(bytes)
}

/// Reads a regular file of at most [`LARGEST`] bytes. Rejects other files, because a path in a
/// trace may also name a device or a pipe that never ends.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() > LARGEST {
        return Err("no regular file of at most 4 GiB".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Returns the build id of an ELF file as hexadecimal digits, or an empty string if the file has no
/// build id.
fn build_id(bytes: &[u8]) -> Result<String, Trouble> {
    let damaged = |error: object::Error| Trouble::Damaged(error.to_string());
    let file = object::File::parse(bytes).map_err(damaged)?;
    let id = file.build_id().map_err(damaged)?.unwrap_or_default();
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the path of a build id's debug information. `None` if the build id has at most two
/// characters, or a character that is not a hexadecimal digit.
fn installed(build_id: &str, debug: &Path) -> Option<PathBuf> {
    let is_plain = build_id.len() > 2 && build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| {
        let (first, rest) = build_id.split_at(2);
        let folder = debug.join(".build-id").join(first);
        folder.join(format!("{rest}.debug"))
    })
}

/// Returns the debug information that the file of debug information at `path` shares with other
/// files. `None` if there is none, or the shared file is missing or of another build.
fn shared_by(bytes: &[u8], path: &Path) -> Option<Vec<u8>> {
    let file = object::File::parse(bytes).ok()?;
    let (name, id) = file.gnu_debugaltlink().ok()??;
    // The path of the shared file is relative to the file itself, not to a link in the folder of
    // build ids.
    let folder = std::fs::canonicalize(path).ok()?;
    let shared = folder.parent()?.join(std::str::from_utf8(name).ok()?);
    let shared = read(&shared).ok()?;
    let own = object::File::parse(&*shared).ok()?;
    let is_it = own.build_id().ok()? == Some(id);
    is_it.then_some(shared)
}
