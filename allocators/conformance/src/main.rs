//! `heapdrome-conformance LIBRARY|system [SEED [PROGRAMS [STEPS [THREADS]]]]` runs the suite;
//! `heapdrome-conformance execute PROGRAM [LIBRARY]` runs one program, as the suite's children do.
//! Exit status: 0 passed, 1 failed, 2 wrong arguments or an unusable file or folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use heapdrome_conformance::{Library, Suite, execute_file};

const USAGE: &str =
    "usage: heapdrome-conformance LIBRARY|system [SEED [PROGRAMS [STEPS [THREADS]]]]
       heapdrome-conformance execute PROGRAM [LIBRARY]";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [mode, program] if mode == "execute" => execute_file(program.as_ref(), None),
        [mode, program, library] if mode == "execute" => {
            execute_file(program.as_ref(), Some(library.as_ref()))
        }
        [library, numbers @ ..] if library != "execute" && numbers.len() <= 4 => {
            run_suite(library, numbers)
        }
        _ => Err((2, USAGE.into())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            eprintln!("{message}");
            ExitCode::from(status)
        }
    }
}

type Outcome = Result<(), (u8, String)>;

fn run_suite(library: &OsString, numbers: &[OsString]) -> Outcome {
    let number = |index: usize, default: u64| match numbers.get(index) {
        None => Ok(default),
        Some(word) => word
            .to_str()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| (2, format!("{} is not a number\n{USAGE}", word.display()))),
    };
    let count = |index, default| {
        let count = number(index, default)?;
        usize::try_from(count).map_err(|_| (2, format!("{count} is too much")))
    };
    let library = if library == "system" {
        Library::System
    } else {
        let path = std::fs::canonicalize(library);
        Library::File(path.map_err(|error| (2, format!("{}: {error}", library.display())))?)
    };
    let executable: PathBuf = std::env::current_exe()
        .map_err(|error| (2, format!("cannot find this executable: {error}")))?;
    let suite = Suite {
        library,
        executable,
        seed: number(0, 1)?,
        programs: number(1, 4)?,
        steps: count(2, 1_000_000)?,
        threads: count(3, 8)?.max(1),
    };
    let failures = suite
        .run()
        .map_err(|error| (2, format!("no temporary folder: {error}")))?;
    if failures.is_empty() {
        println!("all checks and {} programs passed", suite.programs);
        return Ok(());
    }
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    Err((
        1,
        format!("{}\n{} failed", texts.join("\n"), failures.len()),
    ))
}
