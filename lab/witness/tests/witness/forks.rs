//! Tests that multithreaded programs that fork do not deadlock under the witness.

use crate::bench::{Bench, system};
use heapdrome_schema::Ending;

#[test]
fn forks_beside_threads_that_throw_do_not_hang() {
    let bench = Bench::new();
    let source = r#"
        #include <atomic>
        #include <string>
        #include <thread>
        #include <sys/wait.h>
        #include <unistd.h>
        std::atomic<bool> stop;
        void fail() { try { throw std::string(100, 'x'); } catch (std::string &) {} }
        int main() {
            std::thread thread([] { while (!stop) fail(); });
            for (int i = 0; i < 200; i++) {
                if (fork() == 0) { fail(); _exit(0); }
                while (wait(0) > 0);
            }
            stop = true;
            thread.join();
        }"#;
    let program = bench.cxx("storm", source, &["-pthread"]);
    let report = bench.run(&system(), &[&program]);
    assert_eq!(report.ending, Ending::Exited(0));
    assert_eq!(
        (report.proof.processes, report.proof.served_processes),
        (201, 201)
    );
    // Each child allocates and frees the text and the exception.
    assert!(
        report
            .images
            .iter()
            .filter(|image| image.calls == 4)
            .count()
            >= 200
    );
}

#[test]
fn a_child_forked_beside_the_loader_does_not_hang() {
    let bench = Bench::new();
    let text = "extern \"C\" char *made() { return new char[100]; }";
    let library = bench.cxx("opened.so", text, &["-shared", "-fPIC"]);
    // A thread holds a lock of the loader while the program forks. In the child, the first call to
    // operator new reaches a C++ runtime that was loaded after the program's start. This call must
    // not wait for the lock.
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <link.h>
        #include <pthread.h>
        #include <sys/wait.h>
        #include <unistd.h>
        pthread_barrier_t held;
        int visit(struct dl_phdr_info *object, size_t size, void *data) {
            pthread_barrier_wait(&held);
            return pause();
        }
        void *hold(void *data) { return dl_iterate_phdr(visit, data), data; }
        int main() {
            char *(*made)() = dlsym(dlopen("LIBRARY", RTLD_NOW | RTLD_LOCAL), "made");
            pthread_t thread;
            pthread_barrier_init(&held, 0, 2);
            pthread_create(&thread, 0, hold, 0);
            pthread_barrier_wait(&held);
            if (fork() == 0) {
                alarm(20);
                *made() = 1;
                _exit(0);
            }
            int status;
            wait(&status);
            _exit(status != 0);
        }"#;
    let flags = ["-ldl", "-pthread"];
    let program = bench.c("opener", &source.replace("LIBRARY", &library), &flags);
    for entrant in [system(), bench.bump()] {
        let report = bench.run(&entrant, &[&program]);
        assert_eq!(report.ending, Ending::Exited(0), "{}", entrant.name);
        assert_eq!(report.images.len(), 2, "{:#?}", report.images);
        let counted = report.images.iter().all(|image| image.calls > 0);
        assert!(counted, "{:#?}", report.images);
    }
}
