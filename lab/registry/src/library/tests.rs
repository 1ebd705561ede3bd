use super::*;

/// Returns the C library of this test program. It exports malloc.
fn libc_bytes() -> Vec<u8> {
    std::fs::read(crate::system_libc().expect("a C library is loaded")).expect("readable")
}

fn message(bytes: &[u8]) -> String {
    inspect_bytes(bytes)
        .expect_err("cannot be preloaded")
        .to_string()
}

#[test]
fn libc_can_be_preloaded() {
    assert_eq!(inspect_bytes(&libc_bytes()), Ok(()));
}

#[test]
fn a_text_is_not_a_shared_object() {
    assert!(message(b"#!/bin/sh\n").contains("not a shared object"));
    assert!(message(b"").contains("an empty file"));
    assert!(message(b"!<arch>\n").contains("a static library"));
}

#[test]
fn a_library_cut_short_is_told() {
    let whole = libc_bytes();
    for length in [5, 20, 63, 64, 200, 5000] {
        let fault = inspect_bytes(&whole[..length]);
        assert!(fault.is_err(), "{length} bytes were accepted");
    }
}

#[test]
fn another_machine_and_word_size_are_told() {
    let mut bytes = libc_bytes();
    let other = if cfg!(target_arch = "aarch64") {
        elf::EM_X86_64
    } else {
        elf::EM_AARCH64
    };
    bytes[18..20].copy_from_slice(&other.to_le_bytes());
    assert!(
        message(&bytes).contains("for another machine"),
        "{}",
        message(&bytes)
    );
    let mut bytes = libc_bytes();
    bytes[4] = elf::ELFCLASS32;
    assert!(message(&bytes).contains("32 bit"), "{}", message(&bytes));
}

#[test]
fn a_library_without_malloc_is_told() {
    let mut bytes = libc_bytes();
    // Change every occurrence, because the string table may store `malloc` only as the suffix of a
    // longer name.
    let name = b"malloc\0";
    let places: Vec<_> = bytes
        .windows(name.len())
        .enumerate()
        .filter(|(_, w)| w == name)
        .map(|(i, _)| i)
        .collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place] = b'x';
    }
    assert_eq!(inspect_bytes(&bytes), Err(LibraryFault::NoMalloc));
}

#[test]
fn a_program_is_not_a_library() {
    let program = std::fs::read("/proc/self/exe").expect("readable");
    assert!(
        message(&program).contains("a program"),
        "{}",
        message(&program)
    );
}

#[test]
fn missing_folders_and_bad_paths_are_told() {
    assert_eq!(
        inspect(Path::new("/no/such/lib.so")),
        Err(LibraryFault::Missing)
    );
    assert!(matches!(
        inspect(Path::new("/tmp")),
        Err(LibraryFault::NotASharedObject(_))
    ));
    assert!(matches!(
        inspect(Path::new("/dev/zero")),
        Err(LibraryFault::NotASharedObject(_))
    ));
    assert_eq!(
        inspect(Path::new("/tmp/a b.so")),
        Err(LibraryFault::NotPreloadable)
    );
}
