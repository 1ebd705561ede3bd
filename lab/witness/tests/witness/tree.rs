//! Tests of the tracer's findings: unserved programs, warnings, and trees of many programs.

use std::os::unix::fs::PermissionsExt;

use crate::bench::{Bench, forced, system};
use heapdrome_schema::{Coverage, Ending, UnservedReason};
use heapdrome_witness::Report;

/// Program that allocates, and works long enough to have the largest share of the processor time.
const WORKER: &str = r#"
#include <stdlib.h>
int main() {
    for (int i = 0; i < 2000; i++) free(malloc(100));
    for (volatile long i = 0; i < 30000000; i++);
}"#;

fn only_unserved(report: &Report, reason: UnservedReason, program: &str) {
    assert_eq!(report.proof.coverage, Coverage::TooLittle, "{report:#?}");
    let named = &report.proof.unserved[0];
    assert_eq!(named.reason, reason, "{report:#?}");
    assert!(named.program.ends_with(program), "{named:?}");
    assert!(named.cpu_share > 0.5, "{named:?}");
    assert!(!named.advice.is_empty());
}

#[test]
fn a_static_program_is_named() {
    let bench = Bench::new();
    let program = bench.c("static", WORKER, &["-static"]);
    for entrant in [bench.bump(), system()] {
        let report = bench.run(&entrant, &["sh", "-c", &format!("{program}; true")]);
        only_unserved(&report, UnservedReason::StaticBinary, "/static");
    }
}

#[test]
fn a_cleared_environment_is_named() {
    let bench = Bench::new();
    let program = bench.c("worker", WORKER, &[]);
    let report = bench.run(&bench.bump(), &["env", "-i", &program]);
    only_unserved(&report, UnservedReason::ClearedEnvironment, "/worker");
    assert!(
        report.proof.unserved[0]
            .served_by
            .as_ref()
            .unwrap()
            .ends_with("/libc.so.6")
    );
    // The system's allocator needs no `LD_PRELOAD`.
    let report = bench.run(&system(), &["env", "-i", &program]);
    assert_eq!(report.proof.unserved, []);
}

#[test]
fn a_program_with_its_own_malloc_is_named() {
    let bench = Bench::new();
    let source = [include_str!("programs/bump.c"), WORKER].concat();
    let program = bench.c("bundled", &source, &["-rdynamic"]);
    for entrant in [system(), forced()] {
        let report = bench.run(&entrant, &[&program]);
        only_unserved(&report, UnservedReason::BundledAllocator, "/bundled");
        assert!(
            report.proof.unserved[0]
                .served_by
                .as_ref()
                .unwrap()
                .ends_with("/bundled")
        );
    }
}

#[test]
fn a_program_with_its_own_operator_new_is_named() {
    let bench = Bench::new();
    let source = r#"
        #include <cstdlib>
        #include <new>
        #include <string>
        static char area[1 << 20];
        static size_t used;
        void *operator new(size_t size) {
            used = (used + size + 15) % sizeof area & ~(size_t)15;
            return area + used;
        }
        void operator delete(void *) noexcept {}
        void operator delete(void *, size_t) noexcept {}
        int main() {
            std::string text;
            for (int i = 0; i < 2000; i++) text = std::string(100 + i % 9, 'x');
            for (volatile long i = 0; i < 30000000; i++);
            return text.empty();
        }"#;
    let program = bench.cxx("operators", source, &[]);
    for entrant in [bench.bump(), forced()] {
        let report = bench.run(&entrant, &[&program]);
        only_unserved(&report, UnservedReason::BundledAllocator, "/operators");
        let advice = &report.proof.unserved[0].advice;
        assert!(!advice.contains("DEEPBIND"), "{advice}");
    }
}

/// Returns the source of an `operator new` whose body is `take`, for a program or library that may
/// also call malloc.
fn operators(take: &str) -> String {
    format!(
        r#"
        #include <cstdlib>
        #include <new>
        static char area[1 << 20];
        static size_t used;
        void *operator new(size_t size) {{ {take} }}
        void operator delete(void *) noexcept {{}}
        void operator delete(void *, size_t) noexcept {{}}
        "#
    )
}

const FROM_POOL: &str =
    "used = (used + size + 15) % sizeof area & ~(size_t)15; return area + used;";
const FROM_MALLOC: &str = "return std::malloc(size);";
const IN_CHUNKS: &str = r#"
    static char *chunk; static size_t left;
    if (left < size) { chunk = (char *)std::malloc(left = 65536); }
    left -= size; return chunk + left;
"#;

/// Program that calls both `operator new` and malloc itself.
const BOTH: &str = r#"
    #include <cstdlib>
    int main() {
        for (int i = 0; i < 3000; i++) ::operator new(64);
        for (int i = 0; i < 500; i++) std::free(std::malloc(100));
    }
"#;

/// Returns a run's warnings about an `operator new` of a program or library, under the test's
/// allocator.
fn own_operator_warnings(bench: &Bench, program: &str) -> Vec<String> {
    let mut warnings = bench.run(&bench.bump(), &[program]).proof.warnings;
    warnings.retain(|warning| warning.contains("operator new of its own"));
    warnings
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_operator_new_that_takes_its_memory_elsewhere_is_told_beside_calls_of_malloc() {
    let bench = Bench::new();
    for (name, take, is_told) in [
        ("pool", FROM_POOL, true),
        ("chunks", IN_CHUNKS, true),
        ("wrapper", FROM_MALLOC, false),
    ] {
        for flags in [&["-no-pie"][..], &["-pie", "-fPIE"]] {
            let source = [&operators(take), BOTH].concat();
            let program = bench.cxx(name, &source, flags);
            let warnings = own_operator_warnings(&bench, &program);
            assert_eq!(warnings.len(), usize::from(is_told), "{name}: {warnings:?}");
        }
    }
    let warnings = own_operator_warnings(&bench, &bench.text("chunks"));
    assert!(warnings[0].contains("of 1000 calls"), "{warnings:?}");
}

#[test]
fn an_operator_new_is_not_watched_for_ever_where_the_library_is_kept_out() {
    let bench = Bench::new();
    let calls = r#"
        int main() {
            for (int i = 0; i < 5000000; i++) std::free(::operator new(64));
        }
    "#;
    let source = [&operators(FROM_MALLOC), calls].concat();
    let program = bench.cxx("wrapper", &source, &[]);
    let mut request = bench.request(&bench.bump(), &["/usr/bin/env", "-i", &program]);
    // A stop takes about 10 microseconds, so stops at all calls would exceed this timeout.
    request.timeout = Some(std::time::Duration::from_secs(20));
    let report = bench.take(&request).expect("a report");
    assert_eq!(report.ending, heapdrome_schema::Ending::Exited(0));
}

#[test]
fn an_operator_new_of_a_library_is_told_where_it_serves_more_than_malloc() {
    let bench = Bench::new();
    for (name, take, is_told) in [
        ("libpool.so", FROM_POOL, true),
        ("libwrapper.so", FROM_MALLOC, false),
    ] {
        let library = bench.cxx(name, &operators(take), &["-shared", "-fPIC"]);
        let folder = bench.folder.path().to_str().expect("a plain path");
        let flags = [&library, "-Wl,-rpath", folder];
        let program = bench.cxx("user", BOTH, &flags);
        let warnings = own_operator_warnings(&bench, &program);
        assert_eq!(warnings.len(), usize::from(is_told), "{name}: {warnings:?}");
        let told = warnings.iter().all(|told| told.contains("of 3000 calls"));
        assert!(told, "{warnings:?}");
    }
}

#[test]
fn a_program_linked_with_another_allocator_is_seen_and_can_be_forced() {
    let bench = Bench::new();
    bench.c(
        "libbump.so",
        include_str!("programs/bump.c"),
        &["-shared", "-fPIC"],
    );
    let folder = bench.folder.path().to_str().unwrap();
    let program = bench.c(
        "linked",
        WORKER,
        &[&bench.text("libbump.so"), "-Wl,-rpath", folder],
    );
    let report = bench.run(&system(), &[&program]);
    only_unserved(&report, UnservedReason::BundledAllocator, "/linked");
    assert!(
        report
            .proof
            .served_by
            .as_ref()
            .unwrap()
            .ends_with("/libbump.so")
    );
    let report = bench.run(&forced(), &[&program]);
    assert_eq!(report.proof.coverage, Coverage::Whole, "{report:#?}");
    assert!(
        report
            .proof
            .served_by
            .as_ref()
            .unwrap()
            .ends_with("/libc.so.6")
    );
}

#[test]
fn a_deeply_bound_library_is_named() {
    let bench = Bench::new();
    let text = "#include <stdlib.h>
        void work() { for (int i = 0; i < 5000; i++) free(malloc(1)); }";
    let library = bench.c("deep.so", text, &["-shared", "-fPIC"]);
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        int main() {
            void *library = dlopen("LIBRARY", RTLD_NOW | RTLD_DEEPBIND);
            ((void (*)())dlsym(library, "work"))();
        }"#;
    let program = bench.c("opener", &source.replace("LIBRARY", &library), &["-ldl"]);
    let report = bench.run(&bench.bump(), &[&program]);
    only_unserved(&report, UnservedReason::DeepBind, "/opener");
    assert!(
        report.proof.unserved[0]
            .served_by
            .as_ref()
            .unwrap()
            .ends_with("/libc.so.6")
    );
    assert_eq!(bench.run(&system(), &[&program]).proof.unserved, []);
}

#[test]
fn a_library_in_a_namespace_of_its_own_is_named() {
    let bench = Bench::new();
    let text = "#include <stdlib.h>
        void work() { for (int i = 0; i < 5000; i++) free(malloc(1)); }";
    let library = bench.c("apart.so", text, &["-shared", "-fPIC"]);
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        int main() {
            void *library = dlmopen(LM_ID_NEWLM, "LIBRARY", RTLD_NOW);
            ((void (*)())dlsym(library, "work"))();
        }"#;
    let program = bench.c("apart", &source.replace("LIBRARY", &library), &["-ldl"]);
    let report = bench.run(&bench.bump(), &[&program]);
    only_unserved(&report, UnservedReason::DeepBind, "/apart");
}

#[test]
fn a_missing_library_is_named() {
    let bench = Bench::new();
    let program = bench.c("worker", WORKER, &[]);
    let mut entrant = bench.bump();
    let empty = bench.c("empty.so", "int nothing;", &["-shared", "-fPIC"]);
    entrant.preload = vec![empty.into()];
    entrant.library = entrant.preload.first().cloned();
    let report = bench.run(&entrant, &[&program]);
    only_unserved(&report, UnservedReason::NotLoaded, "/worker");
}

#[test]
fn raised_rights_are_named() {
    // SAFETY: geteuid has no precondition.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can make a program of another user's");
        return;
    }
    let bench = Bench::new();
    let program = bench.c("raised", WORKER, &[]);
    std::os::unix::fs::chown(&program, Some(65534), None).expect("root may");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("root may");
    let report = bench.run(&bench.bump(), &[&program]);
    only_unserved(&report, UnservedReason::RaisedRights, "/raised");
}

#[test]
fn a_chain_of_programs_is_followed() {
    let bench = Bench::new();
    let program = bench.c("worker", WORKER, &[]);
    let line = format!("exec env A=1 {program}");
    let report = bench.run(&bench.bump(), &["sh", "-c", &line]);
    assert_eq!(report.proof.coverage, Coverage::Whole, "{report:#?}");
    let programs: Vec<_> = report
        .images
        .iter()
        .map(|image| image.program.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(programs[1..], ["env", "worker"]);
    assert!(report.images[2].calls >= 4000);
}

#[test]
fn a_build_is_served_whole() {
    let bench = Bench::new();
    let mut rules = "all:".to_owned();
    for unit in 0..12 {
        std::fs::write(bench.path(&format!("u{unit}.c")), format!("int f{unit};")).unwrap();
        rules += &format!(" u{unit}.o");
    }
    rules += "\n%.o: %.c\n\tgcc -c $< -o $@\n";
    std::fs::write(bench.path("Makefile"), rules).unwrap();
    let report = bench.run(&forced(), &["make", "-j4"]);
    assert_eq!(report.ending, Ending::Exited(0), "{}", bench.stderr());
    assert_eq!(
        report.proof.coverage,
        Coverage::Whole,
        "{:#?}",
        report.proof
    );
    assert!(report.proof.processes > 3 * 12, "{:#?}", report.proof);
}

#[test]
fn python_is_warned_of() {
    let bench = Bench::new();
    let mut request = bench.request(&bench.bump(), &["python3", "-c", "print(1)"]);
    let Ok(report) = bench.take(&request) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let advised = |report: &Report| {
        report
            .proof
            .warnings
            .iter()
            .any(|w| w.contains("PYTHONMALLOC"))
    };
    assert!(advised(&report), "{report:#?}");
    request
        .environment
        .insert("PYTHONMALLOC".into(), "malloc".into());
    let report = bench.take(&request).expect("a proof");
    assert!(!advised(&report), "{report:#?}");
}

#[test]
fn a_thousand_short_processes_are_all_known() {
    let bench = Bench::new();
    let script = "for i in $(seq 1000); do /bin/true & done; wait";
    let report = bench.run(&forced(), &["sh", "-c", script]);
    assert_eq!(report.ending, Ending::Exited(0));
    let short = report
        .images
        .iter()
        .filter(|image| image.program.ends_with("/true"));
    assert_eq!(short.count(), 1000);
    assert_eq!(
        report.proof.coverage,
        Coverage::Whole,
        "{:#?}",
        report.proof.unserved
    );
}

#[test]
fn an_allocator_that_is_linked_under_names_of_its_own_is_warned_of() {
    let bench = Bench::new();
    let source = "#include <stdlib.h>
        static char arena[1 << 20];
        void *mi_malloc_aligned(size_t size, size_t to) { return arena; }
        FREE
        int main() { free(malloc(9)); return mi_malloc_aligned(9, 8) == 0; }";
    let warnings = |name: &str, free: &str, flags: &[&str]| {
        let program = bench.c(name, &source.replace("FREE", free), flags);
        bench.run(&bench.bump(), &[&program]).proof.warnings
    };
    let free = "void mi_free(void *block) {}";
    let told = warnings("private", free, &[]);
    assert!(told[0].contains("mi_malloc_aligned"), "{told:?}");
    assert!(told[0].contains("not counted"), "{told:?}");
    assert_eq!(warnings("half", "", &[]), [""; 0]);
}
