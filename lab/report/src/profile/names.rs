//! Names of functions and processes, as shown to a reader.

use heapdrome_profile::{ProcessProfile, Profile};

use crate::foreign;

/// Symbol names of C++ operators, each with the name that is shown.
const OPERATORS: [(&str, &str); 20] = [
    ("_Znwm", "new"),
    ("_Znam", "new[]"),
    ("_ZnwmRKSt9nothrow_t", "new(nothrow)"),
    ("_ZnamRKSt9nothrow_t", "new[](nothrow)"),
    ("_ZnwmSt11align_val_t", "new(aligned)"),
    ("_ZnamSt11align_val_t", "new[](aligned)"),
    (
        "_ZnwmSt11align_val_tRKSt9nothrow_t",
        "new(aligned, nothrow)",
    ),
    (
        "_ZnamSt11align_val_tRKSt9nothrow_t",
        "new[](aligned, nothrow)",
    ),
    ("_ZdlPv", "delete"),
    ("_ZdaPv", "delete[]"),
    ("_ZdlPvm", "delete(sized)"),
    ("_ZdaPvm", "delete[](sized)"),
    ("_ZdlPvRKSt9nothrow_t", "delete(nothrow)"),
    ("_ZdaPvRKSt9nothrow_t", "delete[](nothrow)"),
    ("_ZdlPvSt11align_val_t", "delete(aligned)"),
    ("_ZdaPvSt11align_val_t", "delete[](aligned)"),
    ("_ZdlPvmSt11align_val_t", "delete(sized, aligned)"),
    ("_ZdaPvmSt11align_val_t", "delete[](sized, aligned)"),
    (
        "_ZdlPvSt11align_val_tRKSt9nothrow_t",
        "delete(aligned, nothrow)",
    ),
    (
        "_ZdaPvSt11align_val_tRKSt9nothrow_t",
        "delete[](aligned, nothrow)",
    ),
];

/// Returns the name of a function for a reader, such as `new[]` for `_Znam`.
pub(crate) fn function(profile: &Profile, function: u8) -> String {
    let name = profile.function(function);
    match OPERATORS.iter().find(|(known, _)| *known == name) {
        Some((_, operator)) => (*operator).to_owned(),
        None => foreign::short_name(name, 24),
    }
}

/// Returns the program and the process id of a process, such as `cc1 (pid 77)`; its number in the
/// trace if they are unknown.
pub(crate) fn process(process: &ProcessProfile) -> String {
    match &process.process {
        Some(known) => program(&known.program, known.pid),
        None => format!("process {}", process.number),
    }
}

/// Returns a program without its folder, and a process id.
pub(crate) fn program(path: &str, pid: u32) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{} (pid {pid})", foreign::name(name))
}
