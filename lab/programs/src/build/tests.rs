use super::*;
use crate::definition::Build;
use crate::{Settings, find};
use std::path::PathBuf;
use std::process::Command;

fn build() -> &'static Build {
    let program = find("build").expect("the program is there");
    program.build.as_ref().expect("it is a build")
}

fn package_in(cache: &Cache) -> std::path::PathBuf {
    fetch_crate(cache, &(&build().package).into()).expect("in the cache")
}

/// Creates a cache that already holds the package, with small sources instead of the real ones.
fn cache_with_package(root: &Path) -> Cache {
    let cache = Cache::at(root).expect("a folder for the cache");
    let build = build();
    let pin = &build.package;
    let label = format!("{}-{}-{}", pin.name, pin.version, &pin.sha256[..12]);
    let package = cache.shelf(Shelf::Sources).expect("a shelf").join(label);
    for (number, unit) in build.units.iter().enumerate() {
        let path = package.join(format!("{}/{unit}.{}", build.folder, build.extension));
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
        let text = format!("int number_{number}() {{ return {number}; }}\n");
        fs::write(path, text).expect("a source");
    }
    for folder in &build.include {
        fs::create_dir_all(package.join(folder)).expect("a folder");
    }
    cache
}

fn quick() -> Settings {
    Settings::from([("quick".to_owned(), "yes".to_owned())])
}

fn prepare_in(cache: &Cache, settings: &Settings) -> Result<Prepared, ProgramError> {
    find("build")
        .expect("the program is there")
        .prepare(cache, settings, &mut |_| {})
}

fn shell(line: &str, folder: &Path) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .output();
    let output = output.expect("a shell");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{line}: {said}");
    said
}

fn run(prepared: &Prepared) -> String {
    shell(&prepared.command.join(" "), &prepared.directory)
}

#[test]
fn each_run_builds_everything_anew_and_says_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = cache_with_package(folder.path());
    let prepared = prepare_in(&cache, &quick()).expect("gcc and ninja are here");
    let archive = prepared.directory.join("libgeos-part.a");
    let clean = prepared.prepare.clone().expect("a clean before each run");
    for _ in 0..2 {
        shell(&clean, Path::new("/"));
        assert!(!archive.exists(), "the clean leaves nothing to skip");
        assert_eq!(run(&prepared), "");
        assert!(archive.exists());
    }
    assert!(
        prepared.notes[0].starts_with("10 translation units of GEOS"),
        "{:?}",
        prepared.notes
    );
}

#[test]
fn a_second_preparation_leaves_no_objects_of_the_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = cache_with_package(folder.path());
    let first = prepare_in(&cache, &quick()).expect("ready");
    run(&first);
    let directory = first.directory.clone();
    drop(first);
    let _second = prepare_in(&cache, &quick()).expect("ready again");
    let objects = fs::read_dir(directory.join(description::OBJECTS)).expect("the folder is there");
    assert_eq!(objects.count(), 0);
}

#[test]
fn make_builds_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = cache_with_package(folder.path());
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    for tool in ["g++", "ar", "make"] {
        let real = shell(&format!("command -v {tool}"), Path::new("/"));
        std::os::unix::fs::symlink(real.trim(), bin.join(tool)).expect("a link");
    }
    let path = OsString::from(&bin);
    let tools = Tools::find("build", "any", Some(&path)).expect("found in the folder");
    let package = package_in(&cache);
    let units = sources::list(build(), 10, &package).expect("sources");
    let directory = folder.path().join("it's a $folder");
    let description = Description {
        build: build(),
        compiler: &tools.compiler.path,
        archiver: &tools.archiver.path,
        units: &units,
    };
    let lock = cache.lock("test").expect("free");
    write_folder(&lock, &directory, &package, &description, tools.kind).expect("written");
    let command = tools.command(2);
    assert_eq!(command, ["make", "--silent", "-j", "2"]);
    for _ in 0..2 {
        shell(&tools.clean_command(&directory), Path::new("/"));
        assert!(!directory.join("libgeos-part.a").exists());
        assert_eq!(shell(&command.join(" "), &directory), "");
        let members = shell("ar t libgeos-part.a", &directory);
        assert_eq!(members.lines().count(), build().quick_units.len());
    }
}

/// An older ninja prints each file when its compilation ends, so its output cannot be compared.
#[test]
fn only_a_silent_build_prints_the_same_in_every_run() {
    let path = std::env::var_os("PATH");
    let mut tools = Tools::find("build", "any", path.as_ref()).expect("gcc and ninja are here");
    for (builder, version, silent) in [
        ("ninja", "1.11.1", true),
        ("ninja-build", "1.10.2", false),
        ("make", "4.3", true),
    ] {
        tools.builder.name = builder.to_owned();
        tools.kind = Builder::of(&tools.builder);
        tools.builder_version = version.to_owned();
        assert_eq!(tools.silent().is_some(), silent, "{builder} {version}");
    }
}

#[test]
fn what_is_missing_is_named_with_advice() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = |name: &str| {
        let real = shell(&format!("command -v {name}"), Path::new("/"));
        std::os::unix::fs::symlink(real.trim(), folder.path().join(name)).expect("a link");
    };
    let path = OsString::from(folder.path());
    let message = || {
        let missing = Tools::find("build", "any", Some(&path)).err();
        missing.expect("something is missing").to_string()
    };
    assert!(message().contains("a C++ compiler"), "{}", message());
    program("g++");
    assert!(
        message().contains("an archiver, and ar was not found"),
        "{}",
        message()
    );
    program("ar");
    assert!(
        message().contains("ninja or ninja-build or make was not found"),
        "{}",
        message()
    );
    let clang = Tools::find("build", "clang", Some(&path)).err();
    assert!(
        clang
            .expect("no clang there")
            .to_string()
            .contains("apt install clang")
    );
}

#[test]
fn a_damaged_package_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = cache_with_package(folder.path());
    let package = package_in(&cache);
    let units = sources::list(build(), 10, &package).expect("whole as yet");
    fs::remove_file(package.join(&units[3])).expect("gone");
    let message = prepare_in(&cache, &quick())
        .expect_err("one is missing")
        .to_string();
    assert!(message.starts_with("geos-src 0.2.0 lacks "), "{message}");
    assert!(
        message.contains(&units[3]) && message.contains("cache clean"),
        "{message}"
    );
}

#[test]
fn a_cache_that_cannot_be_written_to_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = cache_with_package(folder.path());
    fs::write(cache.path(Shelf::Workloads), "in the way").expect("a file");
    let message = prepare_in(&cache, &quick())
        .expect_err("a file is in the way")
        .to_string();
    assert!(message.contains("HEAPDROME_CACHE"), "{message}");
}

#[test]
fn odd_paths_stay_one_word() {
    assert_eq!(quoted("/usr/bin/g++"), "/usr/bin/g++");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("it's"), r"'it'\''s'");
    let odd = PathBuf::from("/opt/my $tools/g++");
    let build = build();
    let units = [
        "source/src/a/Unit.cpp".to_owned(),
        "source/src/b/Unit.cpp".to_owned(),
    ];
    let description = Description {
        build,
        compiler: &odd,
        archiver: Path::new("ar"),
        units: &units,
    };
    for text in [description.ninja(), description.makefile()] {
        assert!(text.contains("'/opt/my $$tools/g++' -std=c++11"), "{text}");
        assert!(
            text.contains("objects/source_src_a_Unit.o objects/source_src_b_Unit.o"),
            "{text}"
        );
    }
}

#[test]
fn versions_are_compared_by_number() {
    assert!(is_at_least("1.11.1", 1, 11) && is_at_least("2.0", 1, 11));
    assert!(!is_at_least("1.9", 1, 11) && !is_at_least("unknown", 1, 11));
}
