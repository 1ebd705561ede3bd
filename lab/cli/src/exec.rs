//! `heapdrome exec`: a command under an allocator, and nothing else.

use std::os::unix::process::CommandExt;
use std::process::Command;

use heapdrome_schema::merged_setting;

use crate::allocators::Names;
use crate::arguments::ExecArguments;
use crate::failure::Failure;
use crate::progress;

/// Replaces this process by the command. Returns only on failure.
///
/// # Errors
/// Returns an error if the allocator is not available or the command cannot run.
pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let entrant = {
        let engine = progress::engine()?;
        let registry = engine.registry()?;
        Names::new(&registry, &engine).ready(&arguments.allocator)?
    };
    let program = &arguments.command[0];
    let mut environment = entrant.environment();
    for (name, value) in &mut environment {
        let given = std::env::var(name).ok();
        *value = merged_setting(name, value, given.as_deref());
    }
    if let (true, Some(libc)) = (
        entrant.preload.is_empty(),
        heapdrome_registry::system_libc(),
    ) {
        // The C library's own malloc, even if the program links another.
        environment.insert("LD_PRELOAD".to_owned(), libc.to_string_lossy().into_owned());
    }
    if let (Some(mine), Ok(asked)) = (
        environment.get_mut("LD_PRELOAD"),
        std::env::var("LD_PRELOAD"),
    ) {
        mine.push(':');
        mine.push_str(&asked);
    }
    let error = Command::new(program)
        .args(&arguments.command[1..])
        .envs(environment)
        .exec();
    let why = format!("cannot run {program}: {error}");
    Err(if error.kind() == std::io::ErrorKind::NotFound {
        Failure::Usage(why)
    } else {
        Failure::Machine(why)
    })
}
