//! The goldens of the fast path: how many instructions malloc and free take in the libraries as they
//! are shipped.

#![cfg(target_arch = "x86_64")]

use heapdrome_libraries::{GOLDENS, find, instructions};

#[test]
fn no_fast_path_takes_more_than_its_golden() {
    for golden in GOLDENS {
        let found = golden.instructions().expect("a way leads to a return");
        assert!(found <= golden.at_most, "{golden:?} takes {found}");
    }
}

#[test]
fn operator_new_and_delete_take_as_many_as_malloc_and_free() {
    let library = find("libelfmalloc.so").expect("heapdrome carries it").bytes;
    for (operator, function) in [("_Znwm", "malloc"), ("_ZdlPv", "free")] {
        let found = instructions(library, operator);
        assert!(found.is_some(), "{operator}");
        assert_eq!(found, instructions(library, function), "{operator}");
    }
}
