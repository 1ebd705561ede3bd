//! Tests of runs in exactly the environment of the measured runs, and of the entrant that runs the
//! command unchanged.

use heapdrome_schema::{Coverage, Ending, Entrant, UnservedReason};
use heapdrome_witness::{Witness, add_uncounted};

use crate::bench::{Bench, system};

const PROGRAM: &str = "#include <stdlib.h>
    int main() { for (int i = 0; i < 100000; i++) free(malloc(9)); }";

/// Returns the proof of `system` for `command`, with the additions of the uncounted run.
fn proven(bench: &Bench, command: &[&str]) -> heapdrome_schema::Proof {
    let entrant = system();
    let request = bench.request(&entrant, command);
    assert!(request.preloads_nothing());
    let mut proof = bench.take(&request).expect("a proof").proof;
    assert_eq!(proof.coverage, Coverage::Whole, "{proof:?}");
    let witness = Witness::new(bench.folder.path()).expect("a witness");
    let session = witness.start_uncounted(&request).expect("a session");
    let report = session.finish().expect("a report");
    assert_eq!(report.ending, Ending::Exited(0));
    add_uncounted(&mut proof, &entrant, &report);
    proof
}

#[test]
fn an_allocator_that_is_chosen_only_where_nothing_is_preloaded_is_found() {
    let bench = Bench::new();
    let library = bench.bump().preload[0].canonicalize().expect("it is there");
    let program = bench.c("program", PROGRAM, &[]);
    let chosen = library.display();
    let script = format!(
        "if [ -z \"${{LD_PRELOAD+x}}\" ]; then export LD_PRELOAD={chosen}; fi; exec {program}"
    );
    let proof = proven(&bench, &["sh", "-c", &script]);
    assert_eq!(proof.coverage, Coverage::TooLittle, "{proof:?}");
    assert_eq!(proof.served_by.as_deref(), library.to_str());
    assert!(
        proof.unserved[0].advice.contains("start script"),
        "{proof:?}"
    );
}

#[test]
fn the_command_as_it_is_runs_on_whatever_it_chooses() {
    let bench = Bench::new();
    let library = bench.bump().preload[0].canonicalize().expect("it is there");
    let program = bench.c("program", PROGRAM, &[]);
    let chosen = library.display();
    let choosing = format!(
        "if [ -z \"${{LD_PRELOAD+x}}\" ]; then export LD_PRELOAD={chosen}; fi; exec {program}"
    );
    let as_is = Entrant {
        as_is: true,
        ..system()
    };
    for (script, server) in [
        (choosing, library.to_str().expect("plain")),
        (format!("exec {program}"), "libc.so.6"),
    ] {
        let request = bench.request(&as_is, &["sh", "-c", &script]);
        let mut proof = bench.take(&request).expect("a proof").proof;
        let witness = Witness::new(bench.folder.path()).expect("a witness");
        let session = witness.start_uncounted(&request).expect("a session");
        add_uncounted(&mut proof, &as_is, &session.finish().expect("a report"));
        assert_eq!(proof.coverage, Coverage::Whole, "{proof:?}");
        assert!(proof.calls >= 200_000, "{proof:?}");
        let by = proof.served_by.as_deref();
        assert!(by.is_some_and(|by| by.ends_with(server)), "{proof:?}");
    }
}

#[test]
fn a_static_program_is_unserved_under_the_command_as_it_is_too() {
    let bench = Bench::new();
    let fixed = bench.c("fixed", PROGRAM, &["-static"]);
    let as_is = Entrant {
        as_is: true,
        ..system()
    };
    let report = bench.run(&as_is, &[&fixed]);
    let reason = report.proof.unserved.first().map(|part| part.reason);
    assert_eq!(reason, Some(UnservedReason::StaticBinary), "{report:#?}");
}

#[test]
fn a_program_that_chooses_nothing_is_proven_as_it_was() {
    let bench = Bench::new();
    let program = bench.c("program", PROGRAM, &[]);
    let line = format!("{program}; {program}; env -i {program}");
    let proof = proven(&bench, &["sh", "-c", &line]);
    assert_eq!((proof.coverage, proof.unserved.len()), (Coverage::Whole, 0));
}
