//! Loads an allocator into programs that use memory in different ways, and says what broke.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heapdrome_packages::{Cache, ChildError, Job, Shelf, last_lines, sha256_of_bytes};
use heapdrome_record::{Ending, Entrant};

use crate::build::telling_line;
use crate::entry::Language;
use crate::error::file_error;
use crate::{CatalogueError, system_libc};

/// How long a program may take; each takes less than a second under a healthy allocator.
const LIMIT: Duration = Duration::from_secs(10);

/// What the programs say when another library served malloc.
const OTHER_ALLOCATOR: i32 = 2;

/// How one of the programs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It did all that it should.
    Passed,
    /// It found a fault, or died; in words.
    Broke(String),
    /// It did not end within this time and was killed.
    Hung(Duration),
    /// The library was not the one that served malloc, so nothing was checked; in words.
    NotServed(String),
}

/// What one program found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The program's name: what kind of program it stands for.
    pub program: &'static str,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// Remarks that are no faults, such as `lacks pvalloc`.
    pub notes: Vec<String>,
}

/// One program: its name, its file and its text.
struct Program {
    name: &'static str,
    file: &'static str,
    text: &'static str,
    language: Language,
}

const COMMON: &str = include_str!("../checks/common.h");

macro_rules! program {
    ($name:literal, $file:literal, $language:ident) => {
        Program {
            name: $name,
            file: $file,
            text: include_str!(concat!("../checks/", $file)),
            language: Language::$language,
        }
    };
}

const PROGRAMS: [Program; 6] = [
    program!("C", "c.c", C),
    program!("C++", "cxx.cpp", Cpp),
    program!("threads", "threads.c", C),
    program!("aligned", "aligned.c", C),
    program!("fork", "fork.c", C),
    program!("exhaustion", "exhaustion.cpp", Cpp),
];

/// The programs, compiled.
#[derive(Debug)]
pub struct Checks {
    cache: Cache,
    folder: PathBuf,
}

impl Checks {
    /// Compiles the programs into the cache, unless they are there.
    ///
    /// # Errors
    /// When a compiler is missing or the cache cannot be written to.
    pub fn prepare(cache: &Cache) -> Result<Self, CatalogueError> {
        let texts: String = PROGRAMS.iter().map(|program| program.text).collect();
        let key = &sha256_of_bytes(format!("{COMMON}{texts}").as_bytes())[..10];
        let folder = cache.shelf(Shelf::Checks)?.join(key);
        let checks = Self {
            cache: cache.clone(),
            folder,
        };
        if !checks.folder.is_dir() {
            checks.compile()?;
        }
        Ok(checks)
    }

    fn compile(&self) -> Result<(), CatalogueError> {
        let lock = self.cache.lock("checks")?;
        if self.folder.is_dir() {
            return Ok(());
        }
        let staging = lock.staging()?;
        let log = self.cache.shelf(Shelf::Logs)?.join("build-checks.log");
        // A log of an earlier attempt would be quoted in the message about this one.
        let _ = std::fs::remove_file(&log);
        let write = |name: &str, text: &str| {
            let path = staging.path().join(name);
            std::fs::write(&path, text).map_err(file_error("write", path))
        };
        write("common.h", COMMON)?;
        for program in &PROGRAMS {
            write(program.file, program.text)?;
            self.compile_one(program, staging.path(), &log)?;
        }
        // The folder that is renamed must outlive the owner of the staging folder.
        lock.place(&staging.keep(), &self.folder)?;
        Ok(())
    }

    fn compile_one(
        &self,
        program: &Program,
        folder: &Path,
        log: &Path,
    ) -> Result<(), CatalogueError> {
        let (compiler, standard, apt) = match program.language {
            Language::C => ("cc", "-std=gnu11", "gcc"),
            Language::Cpp => ("c++", "-std=c++17", "g++"),
        };
        let mut job = Job::new(compiler, log);
        let command = job.command();
        command
            .current_dir(folder)
            .args([standard, "-O1", "-g", "-fno-builtin", "-pthread"]);
        command.args([program.file, "-o", &executable(program), "-ldl"]);
        let name = "the programs that check allocators".to_owned();
        job.run(self.cache.interrupt())
            .map_err(|error| match error {
                ChildError::Interrupted => CatalogueError::Interrupted { name },
                ChildError::Start { .. } => CatalogueError::NeedsPackage {
                    name,
                    apt: apt.to_owned(),
                },
                error => CatalogueError::Build {
                    name,
                    reason: error.to_string(),
                    last: telling_line(&last_lines(log, 60)),
                    log: log.to_owned(),
                },
            })
    }

    /// Runs every program under an entrant.
    ///
    /// # Errors
    /// When a program cannot be started, or the person asked heapdrome to stop.
    pub fn run(&self, entrant: &Entrant) -> Result<Vec<CheckResult>, CatalogueError> {
        PROGRAMS
            .iter()
            .map(|program| self.run_one(program, entrant))
            .collect()
    }

    fn run_one(&self, program: &Program, entrant: &Entrant) -> Result<CheckResult, CatalogueError> {
        let path = self.folder.join(executable(program));
        let scratch = tempfile::tempdir().map_err(file_error("make a folder in", "/tmp"))?;
        let (output, errors) = (scratch.path().join("output"), scratch.path().join("errors"));
        let create = |path: &Path| std::fs::File::create(path).map_err(file_error("write", path));
        let mut command = Command::new(&path);
        command
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .process_group(0);
        command.stdout(create(&output)?).stderr(create(&errors)?);
        command.env_remove("LD_PRELOAD").envs(entrant.environment());
        let expected = entrant.library.clone().or_else(system_libc);
        command.envs(expected.map(|library| ("HEAPDROME_EXPECTED", library)));
        let child = command.spawn().map_err(file_error("start", &path))?;
        let ending = wait(child, self.cache.interrupt()).map_err(|error| match error {
            WaitError::Interrupted => CatalogueError::Interrupted {
                name: entrant.name.clone(),
            },
            WaitError::Io(source) => file_error("wait for", &path)(source),
        })?;
        let said = last_lines(&errors, 1).concat();
        let outcome = match ending {
            None => CheckOutcome::Hung(LIMIT),
            Some(status) => outcome_of(status, said),
        };
        Ok(CheckResult {
            program: program.name,
            outcome,
            notes: last_lines(&output, 5),
        })
    }
}

/// How the child ended; `None` if it had to be killed. What it started in its group goes with it,
/// however it ended: a program that dies while its child hangs leaves that child behind.
fn wait(mut child: Child, interrupt: &AtomicBool) -> Result<Option<ExitStatus>, WaitError> {
    let started = Instant::now();
    let (mut interrupted, mut late) = (false, false);
    let seen = loop {
        match has_ended(&child) {
            Ok(false) => {}
            other => break other,
        }
        interrupted = interrupt.load(Ordering::Relaxed);
        late = started.elapsed() > LIMIT;
        if interrupted || late {
            break Ok(true);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    // Only now may it be reaped, since that frees the number of its group.
    kill_group(&child);
    let status = child.wait().map_err(WaitError::Io)?;
    seen.map_err(WaitError::Io)?;
    match (interrupted, late) {
        (true, _) => Err(WaitError::Interrupted),
        (false, true) => Ok(None),
        (false, false) => Ok(Some(status)),
    }
}

/// Whether the child has ended; it is not reaped.
fn has_ended(child: &Child) -> std::io::Result<bool> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all fields of siginfo_t are integers, for which zero is a value.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the type that waitid writes.
    if unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut found, options) } != 0 {
        let error = std::io::Error::last_os_error();
        return match error.kind() {
            std::io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        };
    }
    // SAFETY: waitid fills in a child's fields, or leaves the zeros, of which the id is one.
    Ok(unsafe { found.si_pid() } != 0)
}

enum WaitError {
    Interrupted,
    Io(std::io::Error),
}

fn executable(program: &Program) -> String {
    program.file.replace('.', "-")
}

fn outcome_of(status: ExitStatus, said: String) -> CheckOutcome {
    let after = |said: String| {
        if said.is_empty() {
            said
        } else {
            format!(": {said}")
        }
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => CheckOutcome::Passed,
        (Some(OTHER_ALLOCATOR), _) => CheckOutcome::NotServed(said),
        (Some(1), _) if !said.is_empty() => CheckOutcome::Broke(said),
        (Some(code), _) => CheckOutcome::Broke(format!("{}{}", Ending::Exited(code), after(said))),
        (None, signal) => {
            let ending = Ending::Killed(signal.unwrap_or_default());
            CheckOutcome::Broke(format!("{ending}{}", after(said)))
        }
    }
}

fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else {
        return;
    };
    // SAFETY: kill takes plain numbers. The group is the child's own, since it was started with
    // process_group(0), and its number is not reused before the child is waited for.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that makes a child of its own before it does `end`.
    fn shell(folder: &Path, end: &str) -> Child {
        let script = format!("sleep 60 & echo $! >new; mv new child; {end}");
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .process_group(0)
            .spawn()
            .expect("a shell starts")
    }

    /// The child that the shell made.
    fn child_in(folder: &Path) -> libc::pid_t {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < LIMIT, "no child was made");
            if let Ok(text) = std::fs::read_to_string(folder.join("child")) {
                return text.trim().parse().expect("a process id");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn lives(pid: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
    }

    #[test]
    fn what_a_program_leaves_behind_goes_with_it_however_it_ended() {
        for (end, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 3", Some(3), None),
            ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let shell = shell(folder.path(), end);
            let child = child_in(folder.path());
            let ending = wait(shell, &AtomicBool::new(false)).ok().flatten();
            let status = ending.expect("it ends by itself");
            assert_eq!((status.code(), status.signal()), (code, signal));
            let started = Instant::now();
            while lives(child) {
                assert!(started.elapsed() < LIMIT, "{end}: the child is left");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    #[test]
    fn an_interrupt_ends_a_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let ending = wait(shell(folder.path(), "wait"), &AtomicBool::new(true));
        assert!(matches!(ending, Err(WaitError::Interrupted)));
    }
}
