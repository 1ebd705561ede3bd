//! The C and C++ programs that this crate carries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;

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
    let source = folder.join(file);
    std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
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
