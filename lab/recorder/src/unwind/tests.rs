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
    Unwinding::new(origin, Arc::default())
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
