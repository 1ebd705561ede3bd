use super::*;

const CODE: &str = "550000002000-550000003000 r-xp 00002000 08:01 1 /usr/bin/program\n";

/// Unwinding for a process that has written its mappings into this folder, or will.
fn unwinding(folder: &Path, pid: Option<u32>) -> Unwinding {
    let origin = Origin {
        pid,
        maps: folder.join("maps"),
        last_maps: folder.join("last"),
        library: PathBuf::from("/witness.so"),
    };
    Unwinding::new(origin, Arc::default(), FullestStacks::default())
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

#[test]
fn mappings_that_are_being_written_are_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut unwinding = unwinding(folder.path(), Some(std::process::id()));
    write(&unwinding.origin.maps, CODE);
    unwinding.add_mappings(CODE.to_owned());
    assert_eq!(unwinding.text, "", "there is no stack yet");
    assert!(unwinding.read_mappings());
    assert!(unwinding.is_current, "the system's are complete");

    let whole = format!("{CODE}{MAPS_END}");
    write(&unwinding.origin.maps, &whole);
    unwinding.text.clear();
    assert!(unwinding.read_mappings());
    assert_eq!(unwinding.text, CODE);
}

#[test]
fn a_heap_that_grows_leaves_what_is_known_of_the_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut unwinding = unwinding(folder.path(), None);
    write(&unwinding.origin.maps, &format!("{CODE}{MAPS_END}"));
    assert!(unwinding.read_mappings());
    unwinding.numbers.insert(vec![1], 1);

    let grown = format!("{CODE}550000004000-550000009000 rw-p 00000000 00:00 0 [heap]\n");
    write(&unwinding.origin.last_maps, &format!("{grown}{MAPS_END}"));
    assert!(!unwinding.read_mappings(), "no code is new");
    assert!(unwinding.quiet.is_some(), "the next stack does not read");
    assert_eq!((&unwinding.text, unwinding.numbers.len()), (&grown, 1));
    unwinding.add_mappings(CODE.to_owned());
    assert_eq!(unwinding.numbers.len(), 1);

    let library = "7f0000001000-7f0000002000 r-xp 00001000 08:01 2 /usr/lib/library.so\n";
    unwinding.add_mappings(format!("{grown}{library}"));
    assert!(unwinding.numbers.is_empty(), "its stacks end elsewhere now");
    assert_eq!(unwinding.code.len(), 2);
}
