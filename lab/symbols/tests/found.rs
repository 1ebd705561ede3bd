//! Tests of the names found in code that gcc builds: with debug information in the program or in a
//! separate file, and without it. Also tests files that are damaged, of another build or not code.

use std::path::{Path, PathBuf};
use std::process::Command;

use heapdrome_symbols::{Place, Symbols, Trouble};
use heapdrome_trace::{Frame, Module};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SOURCE: &str = "#include <cstdlib>
namespace app {
void *kept;
static inline __attribute__((always_inline)) void *inner(unsigned long size) {
    return malloc(size);
}
__attribute__((noinline)) void outer(unsigned long size) {
    kept = inner(size);
}
}
int main() { app::outer(10); return app::kept == nullptr; }
";

/// Assembly code in which only `hidden` has a size, and `.other` has no symbol.
const ASSEMBLY: &str = "
.text
.globl exported
.type exported, @function
exported: nop
    nop
.type hidden, @function
hidden: nop
    ret
.size hidden, . - hidden
.type last, @function
last: nop
    ret
.section .other, \"ax\", @progbits
    ret
";

/// Lines in [`SOURCE`] of the calls of `malloc` and of `inner`.
const LINES: [u32; 2] = [5, 8];

/// A built program. `outer` is the address of the function `outer`, and `call` that of the code
/// inlined into it.
struct Built {
    folder: tempfile::TempDir,
    module: Module,
    outer: u64,
    call: u64,
}

fn run(command: &mut Command) {
    let output = command.output().expect("it is installed");
    assert!(output.status.success(), "{output:?}");
}

impl Built {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("app.cc"), SOURCE).expect("written");
        let mut compiler = Command::new("g++");
        let options = [
            "-g",
            "-O1",
            "-no-pie",
            "-Wl,--build-id=sha1",
            "app.cc",
            "-o",
            "app",
        ];
        run(compiler.current_dir(folder.path()).args(options));
        let path = folder.path().join("app");
        let bytes = std::fs::read(&path).expect("built");
        let file = object::File::parse(&*bytes).expect("ELF");
        let outer = file
            .symbols()
            .find(|one| one.name() == Ok("_ZN3app5outerEm"));
        let outer = outer.expect("a function").address();
        let id = file.build_id().expect("notes").expect("a build id");
        let module = Module {
            module: 0,
            path: path.to_str().expect("plain").to_owned(),
            build_id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let mut built = Self {
            folder,
            module,
            outer,
            call: outer,
        };
        // The call of `malloc` is the first instruction of the inlined function, so no decoder is
        // needed to find the call.
        let is_inlined = |address: &u64| built.find(&built.module, *address).len() == 2;
        built.call = (outer..outer + 64).find(is_inlined).expect("inlined code");
        built
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    fn symbols(&self, module: &Module, address: u64) -> Symbols {
        let frame = Frame {
            module: Some(0),
            address,
        };
        let debug = self.folder.path().join("debug");
        Symbols::find(std::slice::from_ref(module), [frame].into_iter(), &debug)
    }

    fn find(&self, module: &Module, address: u64) -> Vec<Place> {
        let module_of = Some(0);
        let frame = Frame {
            module: module_of,
            address,
        };
        self.symbols(module, address).places(frame).to_vec()
    }

    /// Moves the debug information into the folder of build ids, and strips the program.
    fn split(&self) {
        let id = &self.module.build_id;
        let folder = self.folder.path().join("debug/.build-id").join(&id[..2]);
        std::fs::create_dir_all(&folder).expect("a folder");
        let debug = folder.join(format!("{}.debug", &id[2..]));
        run(Command::new("objcopy")
            .args(["--only-keep-debug", "--compress-debug-sections"])
            .args([self.path(), debug]));
        run(Command::new("strip").arg(self.path()));
    }

    #[track_caller]
    fn is_inlined(&self, module: &Module) {
        let places = self.find(module, self.call);
        let names: Vec<_> = places.iter().map(|place| &place.function[..]).collect();
        assert_eq!(names, ["inner", "app::outer(unsigned long)"]);
        for (place, line) in places.iter().zip(LINES) {
            assert_eq!(place.line, Some(line));
            assert!(
                place
                    .file
                    .as_ref()
                    .is_some_and(|file| file.ends_with("/app.cc"))
            );
        }
    }
}

fn trouble(symbols: &Symbols) -> &Trouble {
    assert_eq!(symbols.notes.len(), 1);
    &symbols.notes[0].trouble
}

#[test]
fn functions_lines_and_inlined_functions_are_found() {
    let built = Built::new();
    built.is_inlined(&built.module);
}

#[test]
fn debug_information_is_found_by_its_build_id() {
    let built = Built::new();
    built.split();
    built.is_inlined(&built.module);
    // The debug information suffices if the program was removed after the recording.
    std::fs::remove_file(built.path()).expect("it is there");
    built.is_inlined(&built.module);
}

#[test]
fn without_debug_information_the_symbol_table_names_the_function() {
    let built = Built::new();
    run(Command::new("strip").arg("-g").arg(built.path()));
    let expected = Place {
        function: "app::outer(unsigned long)".to_owned(),
        file: None,
        line: None,
    };
    assert_eq!(built.find(&built.module, built.call), [expected]);
    assert!(
        built.find(&built.module, 1).is_empty(),
        "no function is there"
    );
    run(Command::new("strip").arg(built.path()));
    let stripped = built.symbols(&built.module, built.outer);
    assert!(stripped.notes.is_empty());
}

/// Returns the names of five addresses in [`ASSEMBLY`]: the first two bytes of `exported`, the
/// first byte of `hidden`, the second byte of `last`, and the section without a symbol.
fn names_in_assembly(is_stripped: bool) -> [Option<String>; 5] {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("code.s"), ASSEMBLY).expect("written");
    let mut compiler = Command::new("gcc");
    let options = ["-shared", "-nostdlib", "code.s", "-o", "code.so"];
    run(compiler.current_dir(folder.path()).args(options));
    let path = folder.path().join("code.so");
    let bytes = std::fs::read(&path).expect("built");
    let file = object::File::parse(&*bytes).expect("ELF");
    let symbol = |name: &str| file.symbol_by_name(name).expect("a function").address();
    let other = file.section_by_name(".other").expect("a section").address();
    let [exported, hidden, last] = ["exported", "hidden", "last"].map(symbol);
    assert!(last < other, "the linker places it behind the functions");
    if is_stripped {
        run(Command::new("strip").arg(&path));
    }
    let module = Module {
        module: 0,
        path: path.to_str().expect("plain").to_owned(),
        build_id: String::new(),
    };
    [exported, exported + 1, hidden, last + 1, other].map(|address| {
        let frame = Frame {
            module: Some(0),
            address,
        };
        let modules = std::slice::from_ref(&module);
        let symbols = Symbols::find(modules, [frame].into_iter(), folder.path());
        symbols
            .places(frame)
            .first()
            .map(|place| place.function.clone())
    })
}

#[test]
fn a_symbol_without_a_size_names_no_code_of_others() {
    let whole = names_in_assembly(false);
    let whole = whole.each_ref().map(Option::as_deref);
    let [exported, hidden, last] = ["exported", "hidden", "last"].map(Some);
    assert_eq!(whole, [exported, exported, hidden, last, None]);
    let stripped = names_in_assembly(true);
    let stripped = stripped.each_ref().map(Option::as_deref);
    assert_eq!(stripped, [exported, None, None, None, None]);
}

#[test]
fn another_build_is_not_taken() {
    let built = Built::new();
    let module = Module {
        build_id: "00ff".to_owned(),
        ..built.module.clone()
    };
    let symbols = built.symbols(&module, built.call);
    let told = trouble(&symbols).to_string();
    assert!(
        told.contains(&built.module.build_id) && told.contains("had 00ff"),
        "{told}"
    );
    assert!(built.find(&module, built.call).is_empty());
    let unknown = Module {
        build_id: String::new(),
        ..built.module.clone()
    };
    built.is_inlined(&unknown);
}

#[test]
fn what_is_no_file_of_code_is_a_note() {
    let built = Built::new();
    let at = |path: &str| Module {
        path: path.to_owned(),
        build_id: "../../../etc".to_owned(),
        ..built.module.clone()
    };
    for path in ["/nowhere/app", "/dev/zero", "/tmp", "", "[vdso]"] {
        let symbols = built.symbols(&at(path), 1);
        assert!(
            matches!(trouble(&symbols), Trouble::Unreadable(_)),
            "{path}"
        );
    }
    let text = built.folder.path().join("app.cc");
    let symbols = built.symbols(&at(text.to_str().expect("plain")), 1);
    assert!(matches!(trouble(&symbols), Trouble::Damaged(_)));
}

#[test]
fn damaged_files_do_no_harm() {
    let built = Built::new();
    let whole = std::fs::read(built.path()).expect("built");
    let unknown = Module {
        build_id: String::new(),
        ..built.module.clone()
    };
    let try_one = |bytes: &[u8], path: &Path| {
        std::fs::write(path, bytes).expect("written");
        let _ = built.symbols(&unknown, built.call);
    };
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..300 {
        let mut damaged = whole.clone();
        for _ in 0..draws.random_range(1..20) {
            let place = draws.random_range(0..damaged.len());
            damaged[place] = draws.random();
        }
        damaged.truncate(draws.random_range(damaged.len() / 2..=damaged.len()));
        try_one(&damaged, &built.path());
    }
}
