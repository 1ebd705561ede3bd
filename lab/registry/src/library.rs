//! Checks whether a file can be preloaded as an allocator.

use std::io::ErrorKind;
use std::path::Path;

use heapdrome_packages::is_preloadable;
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Architecture, Endianness, FileKind, Object as _, ObjectKind, elf};

use crate::LibraryFault;

/// Checks that this machine's loader can preload `path`, and that the file exports malloc.
pub(crate) fn inspect(path: &Path) -> Result<(), LibraryFault> {
    if !is_preloadable(path) {
        return Err(LibraryFault::NotPreloadable);
    }
    let bytes = read(path)?;
    inspect_bytes(&bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, LibraryFault> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => LibraryFault::Missing,
        _ => LibraryFault::Unreadable(error.to_string()),
    };
    let data = std::fs::metadata(path).map_err(failed)?;
    if data.is_dir() {
        return Err(LibraryFault::NotASharedObject("a folder".to_owned()));
    }
    if !data.is_file() {
        return Err(LibraryFault::NotASharedObject("a special file".to_owned()));
    }
    std::fs::read(path).map_err(failed)
}

fn inspect_bytes(bytes: &[u8]) -> Result<(), LibraryFault> {
    let not_shared = |what: &str| LibraryFault::NotASharedObject(what.to_owned());
    let here = || std::env::consts::ARCH.to_owned();
    match FileKind::parse(bytes) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => {
            return Err(LibraryFault::OtherMachine {
                found: "32 bit".to_owned(),
                here: here(),
            });
        }
        _ if bytes.starts_with(b"!<arch>\n") => return Err(not_shared("a static library")),
        Ok(_) => return Err(not_shared("a file for another system")),
        Err(_) if bytes.is_empty() => return Err(not_shared("an empty file")),
        Err(_) if bytes.starts_with(b"\x7fELF") => return Err(not_shared("cut short")),
        Err(_) => return Err(not_shared("a file of another kind")),
    }
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(|_| not_shared("cut short"))?;
    if file.architecture() != architecture() {
        let found = format!("{:?}", file.architecture()).to_lowercase();
        return Err(LibraryFault::OtherMachine {
            found,
            here: here(),
        });
    }
    if file.kind() != ObjectKind::Dynamic || is_executable(&file) {
        return Err(not_shared("a program or an object file"));
    }
    if exports_malloc(&file) {
        Ok(())
    } else {
        Err(LibraryFault::NoMalloc)
    }
}

fn architecture() -> Architecture {
    if cfg!(target_arch = "aarch64") {
        Architecture::Aarch64
    } else {
        Architecture::X86_64
    }
}

/// Returns whether a file is a position-independent executable. Such a file has the ELF type of a
/// shared object; the flag `DF_1_PIE` identifies it.
fn is_executable(file: &ElfFile64<'_>) -> bool {
    let endian = file.endian();
    let header = file.elf_header();
    let Ok(headers) = header.program_headers(endian, file.data()) else {
        return false;
    };
    let dynamic = headers.iter().find_map(|segment| {
        use object::read::elf::ProgramHeader as _;
        segment.dynamic(endian, file.data()).ok().flatten()
    });
    dynamic.is_some_and(|entries| {
        entries.iter().any(|entry| {
            let is_flags = entry.d_tag.get(endian) == u64::from(elf::DT_FLAGS_1);
            is_flags && entry.d_val.get(endian) & u64::from(elf::DF_1_PIE) != 0
        })
    })
}

fn exports_malloc(file: &ElfFile64<'_>) -> bool {
    use object::{ObjectSymbol as _, SymbolKind};
    file.dynamic_symbols().any(|symbol| {
        symbol.is_definition()
            && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown)
            && symbol.name_bytes() == Ok(b"malloc")
    })
}

#[cfg(test)]
mod tests;
