//! Tests of the counting library: its counts of calls and bytes, also after abrupt ends and in
//! forked children, whether it sees calls to `operator new`, and the errno that it keeps.

use crate::bench::{Bench, forced, system};
use heapdrome_schema::{Coverage, Ending, Entrant, Proof};

/// Returns a program's calls or bytes per round, which `of` reads from its proof. `program` takes
/// its number of rounds as an argument. The difference of two runs excludes the C library's
/// allocations at the start.
fn per_round(bench: &Bench, entrant: &Entrant, program: &str, of: fn(&Proof) -> u64) -> f64 {
    let counted = |rounds: &str| of(&bench.run(entrant, &[program, rounds]).proof) as f64;
    (counted("1100") - counted("100")) / 1000.0
}

fn calls_per_round(bench: &Bench, entrant: &Entrant, program: &str) -> f64 {
    per_round(bench, entrant, program, |proof| proof.calls)
}

fn bytes_per_round(bench: &Bench, entrant: &Entrant, program: &str) -> f64 {
    per_round(bench, entrant, program, |proof| proof.requested_bytes)
}

const C_PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
int main(int n, char **a) {
    for (int i = atoi(a[1]); i > 0; i--) {
        void *p = malloc(10), *q = calloc(3, 5), *r;
        p = realloc(p, 2000);
        p = reallocarray(p, 30, 3);
        malloc_usable_size(p);
        free(p), free(q);
        posix_memalign(&r, 64, 100), free(r);
        free(aligned_alloc(64, 128)), free(memalign(32, 10)), free(valloc(1)), free(pvalloc(1));
        free(strdup("text"));
    }
}"#;

#[test]
fn every_c_function_counts_once() {
    let bench = Bench::new();
    let program = bench.c("c", C_PROGRAM, &[]);
    for entrant in [system(), forced()] {
        assert_eq!(
            calls_per_round(&bench, &entrant, &program),
            19.0,
            "{:?}",
            entrant.preload
        );
    }
}

#[test]
fn the_bytes_that_every_function_asks_for_are_added_up() {
    let bench = Bench::new();
    let c = bench.c("c", C_PROGRAM, &[]);
    let asked = 10 + 3 * 5 + 2000 + 30 * 3 + 100 + 128 + 10 + 1 + 1 + "text\0".len();
    for entrant in [system(), forced()] {
        assert_eq!(bytes_per_round(&bench, &entrant, &c), asked as f64);
    }
    let harmless = CXX_PROGRAM.replace("try", "if (0) try");
    let cxx = bench.cxx("cxx", &harmless, &["-std=c++17"]);
    for entrant in [system(), bench.bump()] {
        assert_eq!(bytes_per_round(&bench, &entrant, &cxx), 186.0);
    }
}

#[test]
fn copies_of_strings_count_also_where_the_entrant_makes_them_itself() {
    let bench = Bench::new();
    let own = "
        #include <stddef.h>
        static char *copied(const char *text, size_t most) {
            static char area[1 << 16];
            static size_t used;
            char *copy = area + used;
            size_t length = 0;
            while (length < most && text[length]) copy[length] = text[length], length++;
            copy[length] = 0;
            used = (used + length + 1) % (sizeof area / 2);
            return copy;
        }
        char *strdup(const char *text) { return copied(text, -1); }
        char *strndup(const char *text, size_t most) { return copied(text, most); }";
    let source = [include_str!("programs/bump.c"), own].concat();
    bench.c("strings.so", &source, &["-shared", "-fPIC"]);
    let copying = crate::bench::entrant("strings", &[bench.path("strings.so")]);
    let source = r#"
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <string.h>
        int main(int n, char **a) {
            for (int i = atoi(a[1]); i > 0; i--) {
                char *whole = strdup("text"), *part = strndup("more text", 4);
                if (strcmp(whole, "text") || strcmp(part, "more")) return 1;
                free(whole), free(part);
            }
        }"#;
    let program = bench.c("copies", source, &[]);
    for entrant in [system(), forced(), copying] {
        let calls = calls_per_round(&bench, &entrant, &program);
        assert_eq!(calls, 4.0, "{}", entrant.name);
        assert_eq!(bytes_per_round(&bench, &entrant, &program), 10.0);
    }
}

#[test]
fn bytes_that_no_call_can_get_are_not_added() {
    let bench = Bench::new();
    let source = r#"
        #include <stdlib.h>
        int main(int n, char **a) {
            size_t huge = (size_t)1 << 62, half = (size_t)1 << 33;
            for (int i = atoi(a[1]); i > 0; i--) {
                if (malloc(huge) || calloc(half, half) || reallocarray(0, huge, 8)) return 1;
                free(malloc(3));
            }
        }"#;
    let program = bench.c("huge", source, &["-D_GNU_SOURCE"]);
    assert_eq!(bytes_per_round(&bench, &system(), &program), 3.0);
}

#[test]
fn what_the_entrant_lacks_is_served_and_not_counted_for_it() {
    let bench = Bench::new();
    let program = bench.c(
        "c",
        r#"
        #include <stdlib.h>
        #include <malloc.h>
        int main(int n, char **a) {
            for (int i = atoi(a[1]); i > 0; i--) { free(malloc(9)); pvalloc(1); }
        }"#,
        &[],
    );
    assert_eq!(calls_per_round(&bench, &bench.bump(), &program), 2.0);
}

const CXX_PROGRAM: &str = r#"
#include <cstdlib>
#include <new>
struct alignas(64) Wide { char bytes[64]; };
int main(int n, char **a) {
    for (int i = atoi(a[1]); i > 0; i--) {
        delete new int;
        delete[] new char[100];
        delete new Wide;
        operator delete(operator new(9, std::nothrow), std::nothrow);
        operator delete[](operator new[](9, std::nothrow), std::nothrow);
        try { operator new((size_t)1 << 62); return 1; } catch (std::bad_alloc &) {}
    }
}"#;

#[test]
fn operators_of_the_runtime_count_once_as_malloc() {
    let bench = Bench::new();
    let program = bench.cxx("cxx", CXX_PROGRAM, &["-std=c++17"]);
    // The failing `new` calls malloc once. Its exception needs a second block, which is freed.
    for entrant in [system(), forced(), bench.bump()] {
        assert_eq!(
            calls_per_round(&bench, &entrant, &program),
            13.0,
            "{:?}",
            entrant.preload
        );
    }
}

#[test]
fn whether_operator_new_is_called_is_known() {
    let bench = Bench::new();
    let program = bench.c("c", C_PROGRAM, &[]);
    for entrant in [system(), bench.bump()] {
        let proof = bench.run(&entrant, &[&program, "10"]).proof;
        assert_eq!(proof.operator_new, Some(false), "{}", entrant.name);
    }
    let program = bench.cxx("cxx", CXX_PROGRAM, &["-std=c++17"]);
    for entrant in [system(), bench.bump()] {
        let proof = bench.run(&entrant, &[&program, "10"]).proof;
        assert_eq!(proof.operator_new, Some(true), "{}", entrant.name);
    }
}

#[test]
fn operators_of_the_entrant_count_once() {
    let bench = Bench::new();
    let mut source = include_str!("programs/bump.c").to_owned();
    // As in a real allocator, the operators reach malloc by name, through the loader: with
    // optimisation by a jump, otherwise by a call.
    source.push_str("void *_Znwm(size_t n) { return malloc(n); }");
    source.push_str("void _ZdlPvm(char *p) { free(p); }");
    let text = "#include <cstdlib>
        int main(int, char **a) { for (int i = atoi(a[1]); i > 0; i--) delete new int; }";
    let program = bench.cxx("new", text, &["-std=c++17"]);
    for (name, level) in [("called.so", "-O0"), ("jumped.so", "-O2")] {
        bench.c(name, &source, &["-shared", "-fPIC", level]);
        let entrant = crate::bench::entrant(name, &[bench.path(name)]);
        assert_eq!(calls_per_round(&bench, &entrant, &program), 2.0, "{name}");
    }
}

#[test]
fn counts_need_no_fallocate() {
    let bench = Bench::new();
    // The program makes `fallocate` fail, as on NFS and some other file systems, and executes
    // itself. It filters the system call, because the counting library bypasses the C library.
    let source = r#"
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int n, char **a) {
            struct sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = {4, rules};
            if (n == 2) {
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
                execl(a[0], a[0], a[1], "again", (char *)0);
                return 78;
            }
            if (syscall(SYS_fallocate, -1, 0, 0, 1) == 0 || errno != EOPNOTSUPP) return 79;
            for (int i = atoi(a[1]); i > 0; i--) malloc(9);
        }"#;
    let program = bench.c("refused", source, &[]);
    assert_eq!(calls_per_round(&bench, &bench.bump(), &program), 1.0);
}

#[test]
fn counts_survive_an_abrupt_end() {
    let bench = Bench::new();
    let source = r#"
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int n, char **a) {
            for (int i = 0; i < 5000; i++) malloc(1);
            if (atoi(a[1]) == 9) kill(getpid(), 9);
            if (atoi(a[1]) == 11) *(volatile int *)0 = 1;
            _exit(atoi(a[1]));
        }"#;
    let program = bench.c("abrupt", source, &[]);
    let endings = [
        ("3", Ending::Exited(3)),
        ("9", Ending::Killed(9)),
        ("11", Ending::Killed(11)),
    ];
    for (argument, ending) in endings {
        let report = bench.run(&bench.bump(), &[&program, argument]);
        assert_eq!(report.ending, ending);
        assert_eq!(report.proof.calls, 5000);
        assert_eq!(report.proof.coverage, Coverage::Whole);
    }
}

#[test]
fn a_forked_child_counts_for_itself_and_threads_together() {
    let bench = Bench::new();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        void *work(void *p) { for (int i = 0; i < 1000; i++) free(malloc(7)); return 0; }
        int main() {
            pthread_t t[4];
            for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            if (fork() == 0) { for (int i = 0; i < 300; i++) malloc(1); _exit(0); }
            wait(0);
            if (vfork() == 0) _exit(0);
            wait(0);
        }"#;
    let program = bench.c("fork", source, &["-pthread"]);
    let report = bench.run(&bench.bump(), &[&program]);
    assert_eq!(
        (report.proof.processes, report.proof.served_processes),
        (3, 3)
    );
    let calls: Vec<u64> = report.images.iter().map(|image| image.calls).collect();
    assert_eq!((calls[0], calls[1]), (300, 0));
    assert!((8000..8100).contains(&calls[2]), "{calls:?}");
    let bytes = report.images.iter().map(|image| image.requested_bytes);
    let bytes: Vec<u64> = bytes.collect();
    assert_eq!((bytes[0], bytes[1]), (300, 0));
    // Each of four threads allocates a thousand blocks of 7 bytes. In addition, the C library
    // allocates memory for each thread.
    assert!((28_000..40_000).contains(&bytes[2]), "{bytes:?}");
    assert_eq!(report.proof.requested_bytes, bytes.iter().sum::<u64>());
    assert_eq!(
        report.proof.served_by,
        Some(
            bench
                .path("bump.so")
                .canonicalize()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        )
    );
}

#[test]
fn a_cxx_library_opened_by_a_c_program_is_served() {
    let bench = Bench::new();
    let text = "extern \"C\" void work(int n) { while (n--) delete new int; }";
    let library = bench.cxx("opened.so", text, &["-shared", "-fPIC"]);
    let source = r#"
        #include <dlfcn.h>
        #include <stdlib.h>
        int main(int n, char **a) {
            void *library = dlopen("LIBRARY", RTLD_NOW | RTLD_LOCAL);
            ((void (*)(int))dlsym(library, "work"))(atoi(a[1]));
        }"#;
    let program = bench.c("opener", &source.replace("LIBRARY", &library), &["-ldl"]);
    assert_eq!(calls_per_round(&bench, &bench.bump(), &program), 2.0);
    assert_eq!(calls_per_round(&bench, &system(), &program), 2.0);
}

#[test]
fn errno_passes_through() {
    let bench = Bench::new();
    let source = r#"
        #include <errno.h>
        #include <stdlib.h>
        int main() {
            errno = 77;
            void *p = malloc(1);
            free(p);
            if (errno != 77) return 1;
            if (malloc((size_t)1 << 62) || errno != ENOMEM) return 2;
            return 0;
        }"#;
    let program = bench.c("errno", source, &[]);
    assert_eq!(bench.run(&system(), &[&program]).ending, Ending::Exited(0));
}
