//! Control groups with a small memory limit: the kernel kills a process that exceeds the limit. So
//! an allocator must reuse the memory that it keeps, or return it in time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use heapdrome_system::group::{self, Version};

use crate::faults::faulty;
use crate::libraries::{build, compile};

const LIMIT: u64 = 96 << 20;
/// MiB that the program touches in each round.
const USED: u64 = 16;
const ROUNDS: u64 = 100;
/// Number of rounds that exceed the limit if every third round leaks its memory.
const ENOUGH: u64 = 3 * ((LIMIT >> 20) / USED + 2);

/// Control group with a limit on memory, removed when the value is dropped.
struct Group(PathBuf);

impl Group {
    /// Creates a control group below the group of this process.
    ///
    /// # Errors
    ///
    /// Description of the missing requirement, in one line.
    fn new(name: &str) -> Result<Self, String> {
        let mut own = group::Group::both("memory");
        let parent = own.find_map(|own| Some((own.version, own.parents("memory").pop()?)));
        let (version, parent) =
            parent.ok_or("no memory controller of control groups is mounted")?;
        let folder = parent.join(format!("heapdrome-{name}-{}", std::process::id()));
        let cannot = |what: &Path, error: io::Error| format!("{}: {error}", what.display());
        std::fs::create_dir(&folder).map_err(|error| cannot(&folder, error))?;
        let group = Self(folder);
        // Allow no swap. Version 1 limits the sum of memory and swap.
        let (limit, with_swap, swap) = match version {
            Version::One => (
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
                LIMIT,
            ),
            Version::Two => ("memory.max", "memory.swap.max", 0),
        };
        let file = group.0.join(limit);
        std::fs::write(&file, LIMIT.to_string()).map_err(|error| cannot(&file, error))?;
        // On a system without swap, this file may be missing.
        let _ = std::fs::write(group.0.join(with_swap), swap.to_string());
        Ok(group)
    }

    /// Runs the program in the group.
    fn run(&self, program: &Path, rounds: u64, library: &Path) -> Result<ExitStatus, String> {
        let members = self.0.join("cgroup.procs");
        let members = OpenOptions::new().write(true).open(members);
        let members: File = members.map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .args([rounds, USED].map(|number| number.to_string()))
            .env("LD_PRELOAD", library);
        // SAFETY: between fork and exec, only the system call `write` runs. Writing 0 moves the
        // calling process into the group.
        unsafe {
            command.pre_exec(move || {
                let done = libc::write(members.as_raw_fd(), b"0".as_ptr().cast(), 1);
                if done == 1 {
                    Ok(())
                } else {
                    Err(io::Error::last_os_error())
                }
            });
        }
        command.status().map_err(|error| error.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group may be busy for a short time after its last process has ended.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Checks that the limit is enforced on this machine: the kernel must kill a program with a leaking
/// library.
fn limit_holds(program: &Path, folder: &Path) -> Result<(), String> {
    // The library leaks the blocks that threads other than the main thread free. Every second round
    // runs in such a thread, but a third of these rounds use no memory.
    let status = Group::new("leaks")?.run(program, ENOUGH, &faulty(folder, "LEAKS"))?;
    if status.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    Err(format!("a limit on memory does not hold: {status}"))
}

#[test]
fn a_program_that_fills_it_again_and_again_is_not_killed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compile(folder.path(), Path::new("tests/suite/group.c"));
    if let Err(missing) = limit_holds(&program, folder.path()) {
        eprintln!("not tested in a control group: {missing}");
        return;
    }
    for (package, file) in [
        ("heapdrome-preload-elfmalloc", "libelfmalloc.so"),
        ("heapdrome-preload-elfmalloc-l", "libelfmalloc_l.so"),
        (
            "heapdrome-preload-elfmalloc-hardened",
            "libelfmalloc_hardened.so",
        ),
    ] {
        let library = build(package, file);
        let group = Group::new(package).expect("there was a group before");
        let status = group.run(&program, ROUNDS, &library);
        assert_eq!(status.map(ExitStatus::into_raw), Ok(0), "{file}");
    }
}
