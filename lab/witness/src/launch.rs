//! Starts the command so that the tracer follows it from its first instruction.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::filter;
use crate::{Request, WitnessError};

/// Lock held while a gate exists. A gate is the pipe on which a new child waits. Until its exec, a
/// child has copies of all pipes that existed at the fork. Two children created concurrently could
/// each hold a copy of the other's gate, so that neither gate would open.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Everything that the child needs between fork and exec, where it must not allocate.
pub(crate) struct Launch {
    program: PathBuf,
    directory: Option<CString>,
    path: CString,
    arguments: Vec<CString>,
    script_arguments: Vec<CString>,
    environment: Vec<CString>,
    streams: [File; 3],
    /// Filter that makes the kernel stop the command at system calls for memory; empty if they are
    /// not counted.
    filter: Vec<libc::sock_filter>,
}

fn text(bytes: &OsStr) -> CString {
    let bytes: Vec<u8> = bytes
        .as_bytes()
        .iter()
        .copied()
        .filter(|&byte| byte != 0)
        .collect();
    CString::new(bytes).unwrap_or_default()
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends, and only this function owns them.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

fn open(path: Option<&Path>, write: bool, purpose: &'static str) -> Result<File, WitnessError> {
    let path = path.unwrap_or(Path::new("/dev/null"));
    let mut options = OpenOptions::new();
    let options = if write {
        options.write(true).create(true).truncate(true)
    } else {
        options.read(true)
    };
    let failed = |source| WitnessError::CannotOpen {
        path: path.to_owned(),
        purpose,
        source,
    };
    options.open(path).map_err(failed)
}

impl Launch {
    /// Opens the streams, and prepares everything else that the child needs. If `preload` is
    /// `None`, `LD_PRELOAD` is not set.
    pub(crate) fn prepare(
        request: &Request,
        preload: Option<OsString>,
    ) -> Result<Self, WitnessError> {
        let program = request.program()?;
        let mut environment = request.complete_environment();
        environment.extend(preload.map(|preload| ("LD_PRELOAD".into(), preload)));
        let assignment = |(name, value): (&OsString, &OsString)| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            text(&OsString::from_vec(bytes))
        };
        let arguments: Vec<CString> = request
            .command
            .iter()
            .map(|argument| text(OsStr::new(argument)))
            .collect();
        let path = text(program.as_os_str());
        let mut script_arguments = vec![text(OsStr::new("/bin/sh")), path.clone()];
        script_arguments.extend(arguments.iter().skip(1).cloned());
        if let Some(directory) = &request.directory {
            let missing = |source| WitnessError::CannotOpen {
                path: directory.clone(),
                purpose: "working folder",
                source,
            };
            std::fs::read_dir(directory).map_err(missing)?;
        }
        let streams = [
            open(request.stdin.as_deref(), false, "standard input")?,
            open(request.stdout.as_deref(), true, "standard output")?,
            open(request.stderr.as_deref(), true, "standard error")?,
        ];
        Ok(Self {
            program,
            directory: request
                .directory
                .as_ref()
                .map(|folder| text(folder.as_os_str())),
            path,
            arguments,
            script_arguments,
            environment: environment.iter().map(assignment).collect(),
            streams,
            filter: Vec::new(),
        })
    }

    /// Enables counting of the command's system calls for memory.
    pub(crate) fn count_system_calls(&mut self) {
        self.filter = filter::program();
    }

    /// Forks the child, calls `attach` with its process ID, and lets it continue to its exec. If
    /// `attach` fails, kills the child and returns the error.
    pub(crate) fn spawn(
        &self,
        attach: impl FnOnce(i32) -> Result<(), WitnessError>,
    ) -> Result<Child, WitnessError> {
        let failed = |action| move |source| WitnessError::System { action, source };
        let (arguments, script) = (pointers(&self.arguments), pointers(&self.script_arguments));
        let environment = pointers(&self.environment);
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (gate, open_gate) = pipe().map_err(failed("make a pipe"))?;
        let (status, tell) = pipe().map_err(failed("make a pipe"))?;
        // SAFETY: the child calls only async-signal-safe functions, and never returns.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(failed("start a process")(io::Error::last_os_error()));
        }
        if pid == 0 {
            // SAFETY: this is the child, which has just been forked. Every pointer was created
            // before the fork and points to a C string of `self`. Every table ends with a null.
            unsafe {
                libc::close(open_gate.as_raw_fd());
                self.become_command(&gate, &tell, [&arguments, &script, &environment])
            }
        }
        drop((gate, tell));
        if let Err(error) = attach(pid) {
            // SAFETY: the child belongs to this process and has not been waited for, so no other
            // process has its ID. A null status pointer is allowed.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
            return Err(error);
        }
        drop(open_gate);
        Ok(Child {
            pid,
            status: File::from(status),
            program: self.program.clone(),
        })
    }

    /// Executes the command in the child. If that fails, reports errno through `tell`.
    ///
    /// # Safety
    /// The caller is a child that has just been forked. The tables contain pointers to C strings
    /// and end with a null.
    unsafe fn become_command(
        &self,
        gate: &OwnedFd,
        tell: &OwnedFd,
        [arguments, script, environment]: [&[*const libc::c_char]; 3],
    ) -> ! {
        // SAFETY: by contract this is a child that has just been forked, and the tables contain
        // pointers to C strings and end with a null. All calls are async-signal-safe. Strings and
        // tables live until the exec, and `none` and `byte` have room for the results. All-zero
        // bytes are a valid `sigset_t`, and the script's table has a first entry.
        unsafe {
            libc::setsid();
            for (number, stream) in self.streams.iter().enumerate() {
                libc::dup2(stream.as_raw_fd(), number as i32);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let folder = self.directory.as_ref();
            // Error that prevents the exec; 0 if there is none.
            let mut failure = 0;
            if folder.is_some_and(|folder| libc::chdir(folder.as_ptr()) != 0) {
                failure = *libc::__errno_location();
            }
            // The tracer opens the gate by closing its end, once it has attached to this process.
            let mut byte = 0_u8;
            while libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 {
                let error = *libc::__errno_location();
                if error != libc::EINTR {
                    failure = error;
                    break;
                }
            }
            if !self.filter.is_empty() {
                filter::install(&self.filter);
            }
            if failure == 0 {
                libc::execve(self.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                if *libc::__errno_location() == libc::ENOEXEC {
                    libc::execve(script[0], script.as_ptr(), environment.as_ptr());
                }
                failure = *libc::__errno_location();
            }
            libc::write(tell.as_raw_fd(), (&raw const failure).cast(), 4);
            libc::_exit(127)
        }
    }
}

/// Process of the command.
pub(crate) struct Child {
    pub(crate) pid: i32,
    status: File,
    program: PathBuf,
}

impl Child {
    /// Waits until the process has executed the command or ended. Returns the error that prevented
    /// the exec; `None` if there was none.
    pub(crate) fn exec_error(&mut self) -> Option<WitnessError> {
        let mut errno = [0; 4];
        io::Read::read_exact(&mut self.status, &mut errno).ok()?;
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        Some(WitnessError::CannotRun {
            program: self.program.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_working_folder_is_reported_even_if_the_filter_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = folder.path().join("gone");
        std::fs::create_dir(&gone).expect("the folder is ours");
        let mut request = Request::of_system(&["/bin/true"]);
        request.directory = Some(gone.clone());
        let mut launch = Launch::prepare(&request, None).expect("a launch");
        // The kernel refuses a filter whose only instruction does not return.
        launch.filter = filter::program();
        launch.filter.truncate(1);
        std::fs::remove_dir(&gone).expect("the folder is empty");
        let mut child = launch.spawn(|_| Ok(())).expect("a child");
        let error = child.exec_error();
        // SAFETY: the child belongs to this process, and the status is not requested.
        unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), 0) };
        let Some(WitnessError::CannotRun { source, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(source.raw_os_error(), Some(libc::ENOENT));
    }
}
