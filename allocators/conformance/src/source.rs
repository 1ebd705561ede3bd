//! C and C++ programs, which are compiled on the machine where they run, because they must use its
//! C library.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;

/// Time limit of a compiler. A compiler that runs longer is considered hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Name and text of a file that programs include.
pub type Header = (&'static str, &'static str);

/// Header of the basic checks, with their macros for failures and the proof that the expected
/// library serves malloc.
pub const BASIC: &[Header] = &[("basic.h", include_str!("../programs/basic.h"))];

/// Environment variable that names the library that must serve malloc, for programs that include
/// [`BASIC`].
pub const EXPECTED: &str = "HEAPDROME_EXPECTED";

/// Exit status of programs that include [`BASIC`] if another library serves malloc.
pub const OTHER_ALLOCATOR: i32 = 2;

/// Source of a program, with the headers that it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the file. It is unique among programs, and its extension gives the language.
    pub file: &'static str,
    text: &'static str,
    headers: &'static [Header],
    optimisation: &'static str,
}

impl Source {
    /// Creates a program that is compiled with optimisation.
    #[must_use]
    pub const fn new(file: &'static str, text: &'static str, headers: &'static [Header]) -> Self {
        Self {
            file,
            text,
            headers,
            optimisation: "-O1",
        }
    }

    /// Disables optimisation, because an optimising compiler may remove code with undefined
    /// behaviour.
    #[must_use]
    pub const fn unoptimised(mut self) -> Self {
        self.optimisation = "-O0";
        self
    }

    /// Returns the names and texts of all of the program's files.
    pub fn files(&self) -> impl Iterator<Item = Header> {
        let headers = self.headers.iter().copied();
        headers.chain([(self.file, self.text)])
    }

    /// Returns the path of the compiled program in `folder`.
    #[must_use]
    pub fn program(&self, folder: &Path) -> PathBuf {
        folder.join(self.file).with_extension("program")
    }

    /// Returns the name of the Debian package with the compiler.
    #[must_use]
    pub fn package(&self) -> &'static str {
        if self.is_cxx() { "g++" } else { "gcc" }
    }

    fn is_cxx(&self) -> bool {
        self.file.ends_with(".cpp")
    }

    /// Writes the files into a folder. Returns the command that compiles them to the path
    /// [`program`](Self::program).
    ///
    /// # Errors
    ///
    /// If the folder cannot be written to.
    pub fn compiler(&self, folder: &Path) -> io::Result<Command> {
        for (name, text) in self.files() {
            std::fs::write(folder.join(name), text)?;
        }
        let mut compiler;
        if self.is_cxx() {
            compiler = Command::new("c++");
            compiler.args(["-std=c++17", "-faligned-new", "-Wno-nonnull"]);
        } else {
            compiler = Command::new("cc");
            compiler.arg("-std=gnu17");
        }
        compiler.args([self.optimisation, "-g", "-pthread"]);
        // Without this option, the compiler would treat malloc and others as built-in, and could
        // remove calls.
        compiler.args(["-fno-builtin", "-Wno-alloc-size-larger-than", "-o"]);
        compiler.arg(self.program(folder));
        compiler.arg(folder.join(self.file)).arg("-ldl");
        Ok(compiler)
    }
    /// Compiles the program into a folder, unless the folder already has it.
    ///
    /// # Errors
    ///
    /// The compiler's messages, or the reason why it could not run.
    pub(crate) fn compiled(&self, folder: &Path) -> Result<PathBuf, String> {
        let program = self.program(folder);
        if !program.exists() {
            let mut compiler = self
                .compiler(folder)
                .map_err(|error| format!("{}: {error}", self.file))?;
            child::run(&mut compiler, LIMIT)
                .map_err(|what| format!("{} does not compile: {what}", self.file))?;
        }
        Ok(program)
    }
}
