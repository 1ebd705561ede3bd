//! Runs all checks and generated programs against one library.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Check, Program, Subject, checks, child, execute, shrink};

/// Time limit of a check or of a generated program. A child that runs longer is considered hung.
const LIMIT: Duration = Duration::from_secs(300);
/// Time limit of a shrunk program, which has fewer steps and fails sooner.
const SHRINK_LIMIT: Duration = Duration::from_secs(20);
const SHRINK_ATTEMPTS: usize = 300;

/// Library under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Library {
    /// The C library's own allocator.
    System,
    /// A shared library.
    File(PathBuf),
}

/// Failure of a check or a program.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the check, or `program loaded` or `program preloaded`.
    pub check: String,
    /// Description of the failure.
    pub what: String,
    /// Smallest failing program that was found, if a program failed.
    pub program: Option<Program>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)?;
        if let Some(program) = &self.program {
            write!(
                f,
                "\nthe smallest program found that fails, {} steps:\n{program}",
                program.0.len()
            )?;
        }
        Ok(())
    }
}

/// Suite for one library.
///
/// ```no_run
/// use heapdrome_conformance::{Library, Suite, checks};
///
/// let suite = Suite {
///     library: Library::File("./libmine.so".into()),
///     executable: std::env::current_exe()?,
///     seed: 1,
///     programs: 0,
///     steps: 0,
///     threads: 1,
/// };
/// for check in checks() {
///     if let Some(failure) = suite.check(check)? {
///         println!("{failure}");
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Suite {
    /// Library under test.
    pub library: Library,
    /// Executable that calls [`execute_file`] for the arguments `execute PROGRAM [LIBRARY]`.
    pub executable: PathBuf,
    /// Seed of the first program. Each further program has the next seed.
    pub seed: u64,
    /// Number of generated programs.
    pub programs: u64,
    /// Number of steps of each program.
    pub steps: usize,
    /// Number of threads of each program.
    pub threads: usize,
}

impl Suite {
    /// Runs all checks and programs.
    ///
    /// # Errors
    ///
    /// If no temporary folder can be created.
    pub fn run(&self) -> io::Result<Vec<Failure>> {
        let folder = tempfile::tempdir()?;
        let mut failures: Vec<Failure> = checks()
            .iter()
            .filter_map(|check| self.check_in(check, folder.path()).err())
            .collect();
        for number in 0..self.programs {
            failures.extend(self.program(self.seed.wrapping_add(number)).err());
        }
        Ok(failures)
    }

    /// Runs one check.
    ///
    /// # Errors
    ///
    /// If no temporary folder can be created.
    pub fn check(&self, check: &Check) -> io::Result<Option<Failure>> {
        let folder = tempfile::tempdir()?;
        Ok(self.check_in(check, folder.path()).err())
    }

    /// Runs one check. Compiles its program into `folder`, unless the folder already has it.
    ///
    /// # Errors
    ///
    /// The failure of the check.
    pub fn check_in(&self, check: &Check, folder: &Path) -> Result<(), Failure> {
        let failure = |what| Failure {
            check: check.name.into(),
            what,
            program: None,
        };
        let program = check.source.compiled(folder).map_err(failure)?;
        let library = match &self.library {
            Library::System => None,
            Library::File(library) => Some(library.as_path()),
        };
        let mut command = check.command(&program, library);
        command.envs(
            library
                .filter(|_| check.preloaded)
                .map(|library| ("LD_PRELOAD", library)),
        );
        child::run(&mut command, LIMIT).map_err(failure)
    }

    /// Runs the generated program of one seed twice: with the library loaded beside the process's
    /// own allocator, and with the library preloaded. For [`Library::System`], runs it once.
    ///
    /// # Errors
    ///
    /// The failure, with a shrunk program that shows it.
    pub fn program(&self, seed: u64) -> Result<(), Failure> {
        let program = Program::generate(seed, self.threads, self.steps);
        let ways = if self.library == Library::System {
            &[true][..]
        } else {
            &[false, true]
        };
        for &preloaded in ways {
            let Err(what) = self.execute(&program, preloaded, LIMIT) else {
                continue;
            };
            let fails =
                |candidate: &Program| self.execute(candidate, preloaded, SHRINK_LIMIT).is_err();
            let smallest = shrink(program.clone(), SHRINK_ATTEMPTS, fails);
            let way = if preloaded { "preloaded" } else { "loaded" };
            let check = format!("program {way}");
            let what = format!("seed {seed}: {what}");
            return Err(Failure {
                check,
                what,
                program: Some(smallest),
            });
        }
        Ok(())
    }

    fn execute(&self, program: &Program, preloaded: bool, limit: Duration) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        std::fs::write(file.path(), program.to_string()).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.executable);
        command.arg("execute").arg(file.path());
        if let Library::File(library) = &self.library {
            if preloaded {
                command.env("LD_PRELOAD", library);
            } else {
                command.arg(library);
            }
        }
        child::run(&mut command, limit)
    }
}

/// Runs the program in a file on a library, or on the process's own allocator. Called by the
/// suite's children.
///
/// # Errors
///
/// An exit status and a one-line message. Status 1 means a fault of the allocator, 2 that the
/// program or the library cannot be used.
pub fn execute_file(program: &Path, library: Option<&Path>) -> Result<(), (u8, String)> {
    let unusable = |what: String| (2, format!("{}: {what}", program.display()));
    let text = std::fs::read_to_string(program).map_err(|error| unusable(error.to_string()))?;
    let program: Program = text.parse().map_err(unusable)?;
    let subject = match library {
        Some(library) => Subject::load(library),
        None => Subject::of_process(),
    };
    execute(&subject.map_err(|what| (2, what))?, &program).map_err(|what| (1, what))
}
