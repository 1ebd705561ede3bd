use super::*;
use crate::objects::Slot;

#[test]
fn lines_that_map_files_are_read_and_others_are_not() {
    let line = b"7f00-7f80 r-xp 00001000 08:01 42    /a folder/lib.so (deleted)";
    let map = mapping(line).expect("a mapping");
    assert!(map.executable);
    assert_eq!(
        (map.range.start, map.range.end, map.offset),
        (0x7f00, 0x7f80, 0x1000)
    );
    assert_eq!(map.range.path, Path::new("/a folder/lib.so"));
    for line in [
        &b"7f00-7f80 rw-p 00000000 00:00 0 [heap]"[..],
        b"",
        b"x /",
        b"a-b /c",
    ] {
        assert!(mapping(line).is_none());
    }
}

#[test]
fn the_test_itself_can_be_looked_at() {
    let seen = inspect(
        std::process::id() as i32,
        Path::new("/none"),
        &Objects::default(),
    );
    let seen = seen.expect("our own memory can be read");
    assert!(!seen.entered);
    assert!(
        seen.leads.iter().any(|lead| lead.to.ends_with("libc.so.6")),
        "{seen:?}"
    );
}

#[test]
fn an_address_that_cannot_be_read_hides_no_other() {
    let words: Vec<u64> = (1..=2000).collect();
    // The page at address 0 is never mapped.
    let bad = |place: usize| [0, 3, 4, 600, 1999].contains(&place);
    let addresses = words.iter().enumerate().map(|(place, word)| {
        if bad(place) {
            16
        } else {
            std::ptr::from_ref(word) as u64
        }
    });
    let read = read_words(std::process::id() as i32, addresses);
    for (place, (read, word)) in read.iter().zip(&words).enumerate() {
        assert_eq!(*read, if bad(place) { 0 } else { *word }, "{place}");
    }
    assert_eq!(read_words(i32::MAX, [16, 16].into_iter()), [0, 0]);
}

#[test]
fn each_copy_of_a_file_that_is_loaded_twice_is_known() {
    let malloc = Slot {
        address: 0x10,
        function: MALLOC,
    };
    let object = Arc::new(Object {
        definitions: vec![malloc],
        ..Object::default()
    });
    let copy = |path: &str, base| Loaded {
        path: path.into(),
        base,
        object: object.clone(),
    };
    let loaded = [copy("/c.so", 0x1000), copy("/c.so", 0x9000)];
    let from = copy("/a.so", 0x5000);
    let leads_to = |target| {
        let call = Call {
            from: &from,
            function: MALLOC,
            target,
        };
        let range = Range {
            start: target,
            end: target + 1,
            path: "/c.so".into(),
        };
        lead(&call, &range, &loaded, Path::new("/none")).is_some()
    };
    assert!(leads_to(0x1010) && leads_to(0x9010));
    assert!(!leads_to(0x1020));
}

#[test]
fn a_function_that_calls_malloc_in_its_turn_is_no_allocators() {
    let reallocarray = FUNCTIONS.iter().position(|name| *name == "reallocarray");
    let reallocarray = reallocarray.expect("it is counted");
    let slot = |function| Slot {
        address: 0x10,
        function,
    };
    let leads = |definitions: &[usize], slots: &[usize]| {
        let path = PathBuf::from("/libbsd.so.0");
        let target = Loaded {
            path: path.clone(),
            base: 0x1000,
            object: Arc::new(Object {
                definitions: definitions.iter().copied().map(slot).collect(),
                slots: slots.iter().copied().map(slot).collect(),
                ..Object::default()
            }),
        };
        let call = Call {
            from: &target,
            function: reallocarray,
            target: 0x1010,
        };
        let (start, end) = (0x1000, 0x2000);
        let range = Range { start, end, path };
        let loaded = std::slice::from_ref(&target);
        lead(&call, &range, loaded, Path::new("/none")).is_some()
    };
    assert!(!leads(&[reallocarray], &[MALLOC]));
    assert!(leads(&[reallocarray, MALLOC], &[MALLOC]));
    assert!(leads(&[reallocarray], &[]));
}

#[test]
fn a_file_that_is_mapped_as_data_is_not_loaded() {
    use std::os::fd::AsRawFd;
    let own = std::env::current_exe().expect("a test has a file");
    let file = std::fs::File::open(&own).expect("it can be read");
    let length = 4096;
    // SAFETY: a new mapping changes no existing memory, and only this test uses it.
    let data = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(data, libc::MAP_FAILED);
    let maps = std::fs::read("/proc/self/maps").expect("the kernel tells");
    let mapped: Vec<Mapped> = maps
        .split(|&byte| byte == b'\n')
        .filter_map(mapping)
        .collect();
    // SAFETY: `data` was mapped above with this length, and no reference to it remains.
    unsafe { libc::munmap(data, length) };
    let of_own = |map: &&Mapped| map.range.path == own && map.offset == 0;
    assert_eq!(mapped.iter().filter(of_own).count(), 2);
    let loaded = loaded_objects(&mapped, &Objects::default());
    let loaded: Vec<_> = loaded.iter().filter(|object| object.path == own).collect();
    assert_eq!(loaded.len(), 1);
    assert_ne!(loaded[0].base, data as u64);
}
