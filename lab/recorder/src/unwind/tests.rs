use std::cell::Cell;

use heapdrome_trace::Recording;

use super::*;

const CODE: &str = "550000002000-550000003000 r-xp 00002000 08:01 1 /usr/bin/program\n";

/// Returns an unwinding for a process whose files of mappings are in `folder`.
fn unwinding(folder: &Path, pid: Option<u32>) -> Unwinding {
    let origin = Origin {
        pid,
        maps: folder.join("maps"),
        last_maps: folder.join("last"),
        library: PathBuf::from("/witness.so"),
        present_maps: process::maps,
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

thread_local! {
    /// Number of times that [`more_code`] was called.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns mappings with more code at each of the first ten calls.
fn more_code(_pid: u32) -> Option<String> {
    CALLS.set(CALLS.get() + 1);
    let start = |number| 0x5500_0000_0000 + number * 0x2000_u64;
    let line = |number| {
        let (start, end) = (start(number), start(number) + 0x1000);
        format!("{start:x}-{end:x} r-xp 00000000 00:00 0 \n")
    };
    Some((0..CALLS.get().min(10)).map(line).collect())
}

#[test]
fn a_stack_of_unknown_code_reads_the_mappings_twice_though_they_change_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut unwinding = unwinding(folder.path(), Some(std::process::id()));
    unwinding.origin.present_maps = more_code;
    let recording = Recording::default();
    let mut writer = Writer::new(Vec::new(), &recording).expect("a writer");
    let mut readings = || {
        let before = CALLS.get();
        let snapshot = Snapshot::without_stack(0x1000 + before);
        unwinding.unwind(snapshot, &mut writer).expect("a stack");
        CALLS.get() - before
    };
    assert_eq!([readings(), readings()], [2, 2]);
}
