//! C and C++ programs that are compiled on the machine where they run, since they must run on its C
//! library.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child;

/// A compiler that runs longer than this hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A file that programs include: its name and its text.
pub type Header = (&'static str, &'static str);

/// The header of basic checks. It has the macros by which they fail, and the proof of which
/// allocator serves.
pub const BASIC: &[Header] = &[("basic.h", include_str!("../programs/basic.h"))];

/// The variable that names the library which must serve malloc, for programs that include
/// [`BASIC`].
pub const EXPECTED: &str = "HEAPDROME_EXPECTED";

/// The status with which programs that include [`BASIC`] end where another library serves malloc.
pub const OTHER_ALLOCATOR: i32 = 2;

/// A program: its file and text, and those of what it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name, whose end says the language; no two programs have the same.
    pub file: &'static str,
    text: &'static str,
    headers: &'static [Header],
    optimisation: &'static str,
}

impl Source {
    /// A program that is compiled with some optimisation.
    #[must_use]
    pub const fn new(file: &'static str, text: &'static str, headers: &'static [Header]) -> Self {
        Self {
            file,
            text,
            headers,
            optimisation: "-O1",
        }
    }

    /// Leaves optimisation out: a compiler that optimises may leave out what can be seen to be
    /// wrong.
    #[must_use]
    pub const fn unoptimised(mut self) -> Self {
        self.optimisation = "-O0";
        self
    }

    /// All of the program's files: names and texts.
    pub fn files(&self) -> impl Iterator<Item = Header> {
        let headers = self.headers.iter().copied();
        headers.chain([(self.file, self.text)])
    }

    /// Where the program is compiled to in a folder.
    #[must_use]
    pub fn program(&self, folder: &Path) -> PathBuf {
        folder.join(self.file).with_extension("program")
    }

    /// The package of Debian that has the compiler.
    #[must_use]
    pub fn package(&self) -> &'static str {
        if self.is_cxx() { "g++" } else { "gcc" }
    }

    fn is_cxx(&self) -> bool {
        self.file.ends_with(".cpp")
    }

    /// Writes the files into a folder, and returns the command that compiles them to
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
        // The compiler must not know what these functions do, or it leaves the calls out.
        compiler.args(["-fno-builtin", "-Wno-alloc-size-larger-than", "-o"]);
        compiler.arg(self.program(folder));
        compiler.arg(folder.join(self.file)).arg("-ldl");
        Ok(compiler)
    }
    /// Compiles the program into a folder, unless it is there.
    ///
    /// # Errors
    ///
    /// The compiler's messages.
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
