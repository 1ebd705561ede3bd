//! Tests of runs in which every block is followed.

use crate::bench::{Bench, forced, system};
use heapdrome_schema::{Ending, Entrant, Evidence};

fn follow(bench: &Bench, entrant: &Entrant, command: &[&str]) -> Evidence {
    let report = bench.follow(entrant, command);
    assert_eq!(report.ending, Ending::Exited(0), "{}", bench.stderr());
    report.evidence.expect("evidence")
}

const BLOCKS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
void *blocks[1000];
void *release(void *data) { for (int i = 0; i < 1000; i++) free(blocks[i]); return data; }
int main() {
    pthread_t thread;
    void *aligned, *large = calloc(1024, 1024);
    for (int i = 0; i < 1000; i++) blocks[i] = malloc(100);
    large = realloc(large, 2 << 20);
    posix_memalign(&aligned, 4096, 70000);
    if (realloc(large, (size_t)1 << 60)) return 1;
    pthread_create(&thread, 0, release, 0);
    pthread_join(thread, 0);
    free(large);
    free(aligned);
    free(malloc(0));
}"#;

#[test]
fn sizes_live_bytes_and_frees_by_other_threads_are_counted() {
    let bench = Bench::new();
    let program = bench.c("blocks", BLOCKS, &["-pthread"]);
    for entrant in [system(), forced(), bench.bump()] {
        let seen = follow(&bench, &entrant, &[&program]);
        let live = 1000 * 100 + (2 << 20) + 70_000;
        // The C library allocates a few hundred bytes for each thread.
        let near = live..live + 4096;
        assert!(near.contains(&seen.peak_live_bytes), "{seen:?}");
        assert!(seen.is_of_one_process(), "{seen:?}");
        assert!((1000..1010).contains(&seen.freed_by_others), "{seen:?}");
        // One resize of the large block succeeded and one failed.
        assert!((1004..1020).contains(&seen.frees), "{seen:?}");
        let of = |below: u64| {
            let size = seen.sizes.iter().find(|size| size.below == below);
            size.map_or((0, 0), |size| (size.blocks, size.bytes))
        };
        assert!((1000..1010).contains(&of(128).0), "{seen:?}");
        assert_eq!(of(1 << 21), (1, 1 << 20), "{seen:?}");
        assert_eq!(of(1 << 22), (1, 2 << 20), "{seen:?}");
        assert_eq!(of(1 << 17), (1, 70_000), "{seen:?}");
        assert_eq!(of(1), (1, 0), "{seen:?}");
    }
}

#[test]
fn a_failed_resize_by_another_thread_is_no_free() {
    let bench = Bench::new();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        void *block;
        void *resize(void *data) {
            for (int i = 0; i < 1000; i++) if (realloc(block, (size_t)1 << 60)) exit(1);
            return data;
        }
        int main() {
            pthread_t thread;
            block = malloc(100);
            pthread_create(&thread, 0, resize, 0);
            pthread_join(thread, 0);
            free(block);
        }"#;
    let program = bench.c("refused", source, &["-pthread"]);
    let seen = follow(&bench, &system(), &[&program]);
    assert!(seen.frees < 20 && seen.freed_by_others < 10, "{seen:?}");
}

#[test]
fn a_forked_child_has_the_live_blocks_of_its_parent() {
    let bench = Bench::new();
    let source = r#"
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main() {
            void *inherited = malloc(3 << 20);
            if (fork() == 0) {
                void *own = malloc(2 << 20);
                free(inherited);
                free(own);
                _exit(0);
            }
            wait(0);
            free(inherited);
        }"#;
    let program = bench.c("fork", source, &[]);
    let seen = follow(&bench, &system(), &[&program]);
    let (largest, all) = (5 << 20, 8 << 20);
    assert!(
        (largest..largest + 4096).contains(&seen.peak_live_bytes),
        "{seen:?}"
    );
    assert!(
        (all..all + 8192).contains(&seen.peak_live_of_all_bytes),
        "{seen:?}"
    );
    assert!(!seen.is_of_one_process());
    assert_eq!(seen.frees, 3);
}

#[test]
fn exceptions_and_errno_pass_through_what_follows_a_call() {
    let bench = Bench::new();
    let library = r#"
        #include <cstdlib>
        #include <cstring>
        #include <new>
        alignas(64) static char area[1 << 26];
        static size_t used;
        extern "C" void *malloc(size_t n) {
            void *p = area + used;
            return used += (n + 31) & ~(size_t)15, p;
        }
        extern "C" void free(void *) {}
        extern "C" void *calloc(size_t n, size_t m) { return malloc(n * m); }
        extern "C" void *realloc(void *p, size_t n) {
            void *q = malloc(n);
            return p ? std::memcpy(q, p, n) : q;
        }
        void *operator new(size_t n) { if (n > 1 << 20) throw std::bad_alloc(); return malloc(n); }
        void operator delete(void *) noexcept {}
        void operator delete(void *, size_t) noexcept {}"#;
    bench.cxx("thrower.so", library, &["-shared", "-fPIC"]);
    let source = r#"
        #include <cerrno>
        #include <new>
        int main() {
            int caught = 0;
            for (int i = 0; i < 1000; i++) {
                try { operator new(1UL << 62); return 1; } catch (std::bad_alloc &) { caught++; }
                errno = 77;
                delete new int;
                if (errno != 77) return 2;
            }
            return caught != 1000;
        }"#;
    let program = bench.cxx("catcher", source, &[]);
    let thrower = crate::bench::entrant("thrower", &[bench.path("thrower.so")]);
    for entrant in [system(), bench.bump(), thrower] {
        let seen = follow(&bench, &entrant, &[&program]);
        let ints = seen.sizes.iter().find(|size| size.below == 8);
        assert_eq!(
            ints.map(|size| size.blocks),
            Some(1000),
            "{}: {seen:?}",
            entrant.name
        );
    }
}

#[test]
fn calls_to_the_system_are_counted_whoever_makes_them() {
    let bench = Bench::new();
    let source = r#"
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int n, char **a) {
            int file = open(a[0], O_RDONLY);
            for (int i = atoi(a[1]); i > 0; i--) {
                void *p = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                madvise(p, 4096, MADV_DONTNEED), madvise(p, 4096, MADV_NORMAL);
                p = mremap(p, 4096, 8192, MREMAP_MAYMOVE);
                syscall(SYS_munmap, p, 8192);
                munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0), 4096);
                syscall(SYS_brk, 0), syscall(SYS_brk, 0), syscall(SYS_brk, 0);
            }
        }"#;
    let program = bench.c("calls", source, &[]);
    let counted = |rounds: &str| {
        let seen = follow(&bench, &system(), &[&program, rounds]);
        let calls = seen.system_calls.expect("they can be counted");
        [
            calls.mmap,
            calls.munmap,
            calls.mremap,
            calls.madvise,
            calls.brk,
        ]
    };
    let (few, many) = (counted("10"), counted("110"));
    let per_round: Vec<f64> = few
        .iter()
        .zip(many)
        .map(|(few, many)| (many as f64 - *few as f64) / 100.0)
        .collect();
    assert_eq!(per_round, [1.0, 2.0, 1.0, 2.0, 3.0]);
    // The library's own calls are excluded. Loading one program takes about 20 calls.
    assert!(few.iter().sum::<u64>() < 10 * 9 + 40, "{few:?}");
}

#[test]
fn time_in_calls_is_estimated_and_leaves_out_the_programs_own() {
    let bench = Bench::new();
    let source = r#"
        #include <stdlib.h>
        int main(int n, char **a) {
            volatile unsigned long sum = 0;
            for (int i = 0; i < 400000; i++) {
                free(malloc(40));
                for (int j = atoi(a[1]); j > 0; j--) sum += j;
            }
        }"#;
    let program = bench.c("timed", source, &[]);
    let seconds = |work: &str| {
        let seen = follow(&bench, &system(), &[&program, work]);
        let time = seen.call_time.expect("enough calls");
        assert!(time.calls >= 800_000 && time.timed >= 700_000, "{time:?}");
        time.spent_s
    };
    let (alone, beside_work) = (seconds("0"), seconds("500"));
    // 800,000 calls take 2 to 100 ns each, which both limits allow with a margin. The work between
    // the calls would exceed the upper limit.
    for estimate in [alone, beside_work] {
        assert!((0.0005..0.2).contains(&estimate), "{alone} {beside_work}");
    }
}

#[test]
fn huge_pages_are_seen_when_a_program_ends() {
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if modes.is_ok_and(|modes| modes.contains("[never]")) {
        println!("no huge pages here: nothing can be seen");
        return;
    }
    let bench = Bench::new();
    let source = r#"
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(int n, char **a) {
            void *p;
            posix_memalign(&p, 2 << 20, 16 << 20);
            if (madvise(p, 16 << 20, atoi(a[1]) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) return 0;
            memset(p, 1, 16 << 20);
            if (atoi(a[1]) == 2) execl("/bin/true", "true", (char *)0);
        }"#;
    let program = bench.c("huge", source, &[]);
    let huge = |mode: &str| follow(&bench, &system(), &[&program, mode]).huge_at_end_bytes;
    assert_eq!(huge("0"), 0);
    // The kernel provides fewer huge pages if memory is fragmented.
    assert!(huge("1") >= 2 << 20);
    assert!(huge("2") >= 2 << 20, "an exec ended the program");
}
