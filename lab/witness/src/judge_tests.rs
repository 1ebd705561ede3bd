//! Tests of the judge's rules, without processes.

use std::path::PathBuf;
use std::sync::Arc;

use heapdrome_schema::{Entrant, Role, UnservedReason};

use crate::inspect::{Inspection, Lead};
use crate::judge::{Expected, judge};
use crate::ledger::Ledger;
use crate::objects::Object;
use crate::program::Program;
use crate::tree::Image;

const LIBC: &str = "/no/such/libc.so.6";

/// Returns the entrant that runs without a library.
pub(crate) fn baseline() -> Entrant {
    Entrant {
        name: "system".to_owned(),
        role: Role::Baseline,
        version: String::new(),
        library: None,
        sha256: None,
        preload: Vec::new(),
        settings: Default::default(),
        hardened: false,
        known_faults: Vec::new(),
        faults_of_new: Vec::new(),
        as_is: false,
    }
}

fn system() -> Expected {
    Expected::new(&baseline())
}

/// Returns the expected objects of an entrant whose library is an existing file, and that file's
/// path.
fn rival() -> (Expected, String) {
    let library = std::env::current_exe()
        .expect("a test has a file")
        .canonicalize();
    let library = library.expect("it can be resolved");
    let path = library.to_string_lossy().into_owned();
    let entrant = Entrant {
        name: "rival".to_owned(),
        role: Role::Rival,
        version: String::new(),
        library: Some(library.clone()),
        sha256: None,
        preload: vec![library],
        settings: Default::default(),
        hardened: false,
        known_faults: Vec::new(),
        faults_of_new: Vec::new(),
        as_is: false,
    };
    (Expected::new(&entrant), path)
}

fn program() -> Program {
    Program {
        path: PathBuf::from("/no/such/program"),
        arguments: Vec::new(),
        object: Some(Arc::new(Object {
            native: true,
            dynamic: true,
            ..Object::default()
        })),
        raised: false,
        preloaded: true,
        python_malloc: None,
    }
}

fn image(id: usize, program: Program) -> Image {
    Image::begin(id, None, id as i32, Arc::new(program), 0)
}

fn ledger(malloc_to: &str) -> Option<Ledger> {
    Some(Ledger {
        malloc_to: Some(malloc_to.to_owned()),
        ..Ledger::default()
    })
}

fn leads(pairs: &[(&str, &str)]) -> Option<Inspection> {
    let lead = |&(from, to): &(&str, &str)| Lead {
        from: from.into(),
        to: to.into(),
    };
    Some(Inspection {
        leads: pairs.iter().map(lead).collect(),
        ..Inspection::default()
    })
}

fn reason(image: Image, expected: &Expected) -> Option<UnservedReason> {
    judge(&[image], expected)[0].unserved
}

#[test]
fn who_malloc_was_passed_on_to_decides() {
    let (rival, library) = rival();
    let with = |server: &str| Image {
        ledger: ledger(server),
        ..image(1, program())
    };
    assert_eq!(reason(with(&library), &rival), None);
    assert_eq!(reason(with(LIBC), &rival), Some(UnservedReason::NotLoaded));
    assert_eq!(
        reason(with("/other.so"), &rival),
        Some(UnservedReason::BundledAllocator)
    );
    assert_eq!(reason(with(LIBC), &system()), None);
    assert_eq!(
        reason(with("/other.so"), &system()),
        Some(UnservedReason::BundledAllocator)
    );
}

#[test]
fn calls_past_the_witness_are_judged_by_where_they_lead() {
    let (rival, library) = rival();
    let with = |pairs: &[(&str, &str)]| Image {
        ledger: ledger(&library),
        inspection: leads(pairs),
        ..image(1, program())
    };
    assert_eq!(reason(with(&[("/a.so", &library)]), &rival), None);
    assert_eq!(
        reason(with(&[("/a.so", LIBC)]), &rival),
        Some(UnservedReason::DeepBind)
    );
    let own = with(&[("/a.so", "/a.so")]);
    assert_eq!(reason(own, &rival), Some(UnservedReason::BundledAllocator));
    let program = with(&[("/a.so", "/no/such/program")]);
    assert_eq!(
        reason(program, &rival),
        Some(UnservedReason::BundledAllocator)
    );
    // Calls that the entrant's own library makes are not escapes.
    assert_eq!(reason(with(&[(&library, LIBC)]), &rival), None);
}

#[test]
fn a_program_that_was_not_entered_has_its_reason() {
    let (rival, _) = rival();
    let with = |change: fn(&mut Program)| {
        let mut program = program();
        change(&mut program);
        Image {
            inspection: leads(&[("/no/such/program", LIBC)]),
            ..image(1, program)
        }
    };
    let cleared = with(|program| program.preloaded = false);
    assert_eq!(
        reason(cleared, &rival),
        Some(UnservedReason::ClearedEnvironment)
    );
    let raised = with(|program| program.raised = true);
    assert_eq!(reason(raised, &rival), Some(UnservedReason::RaisedRights));
    assert_eq!(
        reason(with(|_| ()), &rival),
        Some(UnservedReason::NotLoaded)
    );
    // The system's own allocator serves a program without the preload or with raised rights.
    assert_eq!(
        reason(with(|program| program.preloaded = false), &system()),
        None
    );
    assert_eq!(
        reason(with(|program| program.raised = true), &system()),
        None
    );
}

#[test]
fn a_program_without_loader_or_for_another_machine_is_unserved_under_every_entrant() {
    let (rival, _) = rival();
    for (dynamic, native, expected) in [
        (false, true, UnservedReason::StaticBinary),
        (true, false, UnservedReason::OtherMachine),
    ] {
        for entrant in [&rival, &system()] {
            let object = Object {
                dynamic,
                native,
                ..Object::default()
            };
            let program = Program {
                object: Some(Arc::new(object)),
                ..program()
            };
            assert_eq!(reason(image(1, program), entrant), Some(expected));
        }
    }
}

#[test]
fn a_forked_image_inherits_and_one_that_only_executes_does_not_count() {
    let (rival, library) = rival();
    let parent = Image {
        ledger: ledger(&library),
        ..image(1, program())
    };
    let child = Image {
        origin: Some(1),
        replaced: true,
        ..image(2, program())
    };
    let grandchild = Image {
        origin: Some(2),
        ..image(3, program())
    };
    // Children end before their parents.
    let verdicts = judge(&[grandchild, child, parent], &rival);
    assert!(verdicts.iter().all(|verdict| verdict.unserved.is_none()));
    assert_eq!(
        verdicts.iter().map(|v| v.counts).collect::<Vec<_>>(),
        [true, false, true]
    );
}

#[test]
fn a_program_that_was_killed_while_it_was_loaded_is_no_process() {
    let (rival, _) = rival();
    let verdict = judge(&[image(1, program())], &rival).remove(0);
    assert_eq!((verdict.counts, verdict.unserved), (false, None));
}
