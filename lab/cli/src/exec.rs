//! `heapdrome exec`: runs a command under an allocator, without measuring.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use heapdrome_schema::{Entrant, merged_setting};

use crate::allocators::Names;
use crate::arguments::ExecArguments;
use crate::failure::Failure;
use crate::progress;

/// Replaces this process by the command. Returns only on failure.
///
/// # Errors
/// Returns an error if the allocator is not available or the command cannot run.
pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let entrant = ready(&arguments.allocator)?;
    let program = &arguments.command[0];
    let error = Command::new(program)
        .args(&arguments.command[1..])
        .envs(environment(&entrant))
        .exec();
    Err(cannot_run(program, &error))
}

/// Builds an allocator if needed, and returns its entrant.
///
/// # Errors
/// Returns an error if there is no such allocator, or it cannot be built.
pub fn ready(allocator: &str) -> Result<Entrant, Failure> {
    let engine = progress::engine()?;
    let registry = engine.registry()?;
    Names::new(&registry, &engine).ready(allocator)
}

/// Returns the variables under which a command runs with an allocator, in addition to those of this
/// process. The value of `LD_PRELOAD` ends with its value in this process, and glibc's tunables
/// include those of this process that the allocator does not set.
pub fn environment(entrant: &Entrant) -> BTreeMap<String, String> {
    let mut environment = entrant.environment();
    for (name, value) in &mut environment {
        let given = std::env::var(name).ok();
        *value = merged_setting(name, value, given.as_deref());
    }
    if let (true, Some(libc)) = (
        entrant.preload.is_empty(),
        heapdrome_registry::system_libc(),
    ) {
        // An entrant without a library uses the C library's malloc. Preload the C library, so that
        // it serves even a program that links another malloc.
        environment.insert("LD_PRELOAD".to_owned(), libc.to_string_lossy().into_owned());
    }
    if let (Some(mine), Ok(asked)) = (
        environment.get_mut("LD_PRELOAD"),
        std::env::var("LD_PRELOAD"),
    ) {
        mine.push(':');
        mine.push_str(&asked);
    }
    environment
}

/// Returns the failure of a command that could not be started.
pub fn cannot_run(program: &str, error: &std::io::Error) -> Failure {
    let why = format!("cannot run {program}: {error}");
    if error.kind() == std::io::ErrorKind::NotFound {
        Failure::Usage(why)
    } else {
        Failure::Machine(why)
    }
}
