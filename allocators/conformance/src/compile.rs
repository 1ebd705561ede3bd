//! The C and C++ programs that this crate carries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;

/// Headers that programs include: file names and texts.
const HEADERS: &[(&str, &str)] = &[("storm.h", include_str!("../programs/storm.h"))];

/// Compiles `text` into `folder`, unless that was done; `file` names it there, and its language.
///
/// # Errors
///
/// What the compiler said.
pub(crate) fn compile(folder: &Path, file: &str, text: &str) -> Result<PathBuf, String> {
    let program = folder.join(file).with_extension("program");
    if program.exists() {
        return Ok(program);
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map(|()| path.clone())
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    for (name, text) in HEADERS {
        write(name, text)?;
    }
    let source = write(file, text)?;
    let mut compiler = if file.ends_with(".cpp") {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-faligned-new", "-Wno-nonnull"]);
        compiler
    } else {
        Command::new("gcc")
    };
    // The compiler must not know what these functions do, or it leaves the calls out.
    compiler.args([
        "-O1",
        "-g",
        "-fno-builtin",
        "-Wno-alloc-size-larger-than",
        "-pthread",
    ]);
    compiler.arg("-o").arg(&program).arg(&source).arg("-ldl");
    child::run(&mut compiler, Duration::from_secs(120))
        .map_err(|what| format!("{file} does not compile: {what}"))?;
    Ok(program)
}
