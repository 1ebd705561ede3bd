//! Tests of `heapdrome record` under difficult conditions: failed calls, forks, sandboxes, pipes,
//! small stacks, killed collectors and concurrent recordings.

use std::process::Command;
use std::time::{Duration, Instant};

use heapdrome_trace::{Beginning, Ending, Operation, Reader};

use crate::record::{COUNTED, Trace, record};
use crate::support::{Site, program, recorded_program, static_program, throwing_program};

#[test]
fn an_operator_new_that_throws_is_a_failed_call() {
    let site = Site::new();
    let (program, allocator) = throwing_program();
    for sample in ["0", "1K"] {
        let mut arguments = vec!["record", "-o", "t.trace", "--force"];
        arguments.extend(
            (sample != "0")
                .then_some(["--sample", sample])
                .iter()
                .flatten(),
        );
        arguments.extend(["--", &program]);
        let mut command = site.command(&arguments);
        command.env("LD_PRELOAD", &allocator);
        let outcome = site.start(command).wait();
        outcome.ends_with(0);
        assert_eq!(outcome.stdout, "caught 3\n");
        let trace = Trace::read(&site.path("t.trace"));
        let failed: Vec<_> = trace.steps[&0]
            .iter()
            .filter_map(|step| match step.operation {
                Operation::Fail { size, .. } => Some((trace.name(step.operation), size)),
                _ => None,
            })
            .collect();
        let expected: Vec<_> = (0..3).map(|more| ("_Znwm", (1 << 50) + more)).collect();
        assert_eq!(failed, expected, "sample {sample}");
    }
}

#[test]
fn a_child_inherits_what_its_parent_had_when_it_forked() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["later", "100"]);
    outcome.ends_with(0);
    let (parent, child) = (trace.blocks(0), trace.blocks(1));
    assert_eq!((parent.made, parent.freed), (101, 1));
    assert_eq!((child.made, child.inherited), (0, 1), "freed by both");
    let Beginning::Forked { bytes, .. } = trace.processes[1].beginning else {
        panic!("{:?}", trace.processes[1]);
    };
    assert!((COUNTED..2 * COUNTED).contains(&bytes), "{bytes}");
}

#[test]
fn children_of_two_threads_that_fork_at_once_inherit_what_their_own_thread_had() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["two_fork", "50"]);
    outcome.says(0, &["of 101 processes"]);
    let parent = trace.blocks(0);
    assert_eq!((parent.made, parent.freed), (100, 100));
    for child in 1..=100 {
        let child = trace.blocks(child);
        assert_eq!((child.made, child.inherited), (0, 1));
    }
}

#[test]
fn threads_that_are_cancelled_when_they_first_allocate_are_recorded() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["cancel", "20"]);
    outcome.ends_with(0);
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (20, 20));
}

#[test]
fn a_program_that_forbids_itself_calls_to_the_system_is_not_killed() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["strict", "200000"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (200_000, 200_000));
    std::fs::remove_file(site.path("app.trace")).expect("removed");
    let (outcome, trace) = record(&site, &["filtered", "50000"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (200_000, 200_000));
    assert_eq!(blocks.makers.len(), 4);
    assert!(trace.is_complete() && !trace.finishes[0].gave_up);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_that_forbids_itself_the_processors_counter_is_not_killed() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["counterless", "1000"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
    let [parent, child] = [0, 1].map(|process| trace.blocks(process));
    assert_eq!((parent.made, parent.freed), (2000, 2000));
    assert_eq!(parent.makers.len(), 2);
    assert_eq!((child.made, child.freed), (1000, 1000));
}

#[test]
fn a_child_that_is_forked_in_a_sandbox_is_named_with_its_reason() {
    let site = Site::new();
    let (outcome, _) = record(&site, &["forks_in_sandbox", "1"]);
    outcome.says(0, &["it was forked in a sandbox"]);
}

#[test]
fn a_sandbox_of_a_child_of_vfork_is_not_its_parents() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["vfork_in_sandbox", "1"]);
    outcome.says(0, &["of 2 processes"]);
    assert_eq!(trace.blocks(1).made, 1);
}

#[test]
fn a_strict_sandbox_of_a_child_of_vfork_kills_neither_it_nor_its_parents_recording() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["vfork_strict", "200000"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
    let blocks = trace.blocks(0);
    assert_eq!((blocks.made, blocks.freed), (400_001, 400_001));
}

#[test]
fn a_process_has_its_own_number_if_a_child_of_vfork_allocates_first() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["vfork_after_fork", "4"]);
    outcome.ends_with(0);
    let pids: Vec<_> = trace.processes.iter().map(|it| it.pid).collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert_eq!(outcome.stdout, format!("{}\n", pids[1]));
    assert_eq!(trace.blocks(1).made, 5);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_right_to_read_the_counter_is_not_that_of_a_child_of_vfork() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["vfork_counter", "4"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
    // A process that may not read the processor's time-stamp counter may seem to begin before its
    // parent, so either number may be that of the child.
    assert!(
        [0, 1]
            .iter()
            .any(|&process| trace.blocks(process).made == 4)
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_system_call_returns_on_the_stack_that_it_gave_its_child() {
    let site = Site::new();
    let (outcome, _) = record(&site, &["clones", "1"]);
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "fine\n");
}

#[test]
fn a_named_pipe_without_a_reader_is_refused() {
    let site = Site::new();
    let pipe = site.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let arguments = ["record", "-o", "pipe", "--", &program(), "1"];
    let outcome = site.run(&arguments);
    outcome.complains(2, &["pipe is a named pipe that no process reads"]);
    assert_eq!(outcome.stdout, "");
    let reader = std::thread::spawn(move || std::fs::read(pipe));
    // The reader may open the pipe late, so the recording is repeated until the pipe has a reader.
    let patience = Instant::now() + Duration::from_secs(60);
    while site.run(&arguments).status != 0 {
        assert!(Instant::now() < patience, "the reader does not count");
    }
    let bytes = reader.join().expect("no panic").expect("read");
    let mut trace = Reader::new(&bytes[..]).expect("a trace");
    while trace.next_chunk().expect("no damage").is_some() {}
    assert!(matches!(trace.ending(), Some(Ending::Complete(_))));
}

#[test]
fn a_small_stack_is_enough() {
    let site = Site::new();
    let heapdrome = env!("CARGO_BIN_EXE_heapdrome");
    let script = format!(
        "ulimit -s 64; exec '{heapdrome}' record -o s.trace -- '{}' chain 1",
        recorded_program()
    );
    let mut shell = Command::new("/bin/sh");
    let shell = shell.current_dir(site.path("")).args(["-c", &script]);
    let output = shell.output().expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", output.status);
    assert!(told.contains("recorded "), "{told}");
}

#[test]
fn what_cannot_be_recorded_leaves_no_trace_and_keeps_an_old_one() {
    let site = Site::new();
    site.file("app.trace", "mine");
    let trace = |arguments: &[&str]| {
        let mut all = vec!["record", "-o", "app.trace"];
        all.extend(arguments);
        let outcome = site.run(&all);
        assert_eq!(
            std::fs::read(site.path("app.trace")).expect("kept"),
            b"mine"
        );
        outcome
    };
    trace(&["--", &program(), "1"]).complains(2, &["app.trace exists"]);
    trace(&["--force", "--", "./missing"]).complains(2, &["cannot run ./missing"]);
    let outcome = site.run(&["record", "--", &static_program(), "1"]);
    outcome.complains(2, &["nothing was recorded"]);
    assert_eq!(site.visible_files(), ["app.trace"]);
    site.run(&["record", "-o", "-", "--", "true"]).ends_with(2);
    site.run(&["record", "-o", "no/folder", "--", "true"])
        .ends_with(4);
}

#[test]
fn two_recorders_at_once_do_not_disturb_each_other() {
    let site = Site::new();
    let program = recorded_program();
    let start = |name: &str| {
        site.start(site.command(&["record", "-o", name, "--", &program, "chain", "2000"]))
    };
    for (running, name) in [(start("a"), "a"), (start("b"), "b")] {
        running.wait().ends_with(0);
        assert_eq!(Trace::read(&site.path(name)).all().resized, 20_000);
    }
}

#[test]
fn a_trace_is_readable_after_its_collector_was_killed_and_the_program_goes_on() {
    let site = Site::new();
    let program = recorded_program();
    let (end, out) = (site.path("end"), site.path("out"));
    let script = format!(
        "'{program}' until 10000 '{}' > '{}'",
        end.display(),
        out.display()
    );
    let arguments = ["record", "-o", "app.trace", "--", "/bin/sh", "-c", &script];
    let mut running = site.start(site.command(&arguments));
    let patience = Instant::now() + Duration::from_secs(60);
    let length = || std::fs::metadata(site.path("app.trace")).map_or(0, |file| file.len());
    while length() < 10_000 {
        assert!(
            Instant::now() < patience && running.is_running(),
            "{}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGKILL);
    running.wait();
    // After this pause, the program's rings are full, and no process reads them.
    std::thread::sleep(Duration::from_millis(200));
    site.file("end", "");
    while std::fs::read_to_string(&out).unwrap_or_default() != "ended by itself\n" {
        assert!(Instant::now() < patience, "the program hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    let trace = Trace::read(&site.path("app.trace"));
    assert!(matches!(trace.ending, Some(Ending::CutOff { .. })));
    assert!(trace.all().made > 10_000);
}

#[test]
fn a_recording_may_end_before_its_command() {
    let site = Site::new();
    let program = recorded_program();
    let end = site.path("end");
    let end = end.to_str().expect("plain");
    let arguments = [
        "record", "--for", "500ms", "--", &program, "until", "1000", end,
    ];
    let mut running = site.start(site.command(&arguments));
    let patience = Instant::now() + Duration::from_secs(60);
    let is_complete = || {
        let file = std::fs::File::open(site.path("heapdrome.trace")).ok()?;
        let mut reader = Reader::new(file).ok()?;
        while reader.next_chunk().ok()?.is_some() {}
        matches!(reader.ending(), Some(Ending::Complete(_))).then_some(())
    };
    while is_complete().is_none() {
        assert!(
            Instant::now() < patience && running.is_running(),
            "{}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(running.is_running());
    site.file("end", "");
    let outcome = running.wait();
    outcome.ends_with(0);
    assert_eq!(outcome.stdout, "ended by itself\n");
}

#[test]
fn of_two_recorders_with_one_output_the_second_leaves_it_alone() {
    let site = Site::new();
    let program = recorded_program();
    let arguments = ["record", "-o", "a b.trace", "--", &program, "chain", "2000"];
    let both = [(); 2].map(|()| site.start(site.command(&arguments)));
    let ended = both.map(|running| running.wait());
    let succeeded = ended.iter().filter(|outcome| outcome.status == 0);
    assert_eq!(succeeded.count(), 1);
    let failed = ended.iter().find(|outcome| outcome.status != 0);
    let failed = failed.expect("one of them");
    assert!(
        failed.stderr.contains("a b.trace exists") || failed.stderr.contains("File exists"),
        "{}",
        failed.stderr
    );
    let trace = Trace::read(&site.path("a b.trace"));
    assert!(trace.is_complete());
    assert_eq!(trace.all().resized, 20_000);
    assert_eq!(site.visible_files(), ["a b.trace"]);
}

#[test]
fn a_closed_standard_output_and_error_disturb_no_recording() {
    let site = Site::new();
    let heapdrome = env!("CARGO_BIN_EXE_heapdrome");
    let script = format!(
        "exec '{heapdrome}' record -o c.trace -- '{}' chain 10 >&- 2>&-",
        recorded_program()
    );
    let mut shell = Command::new("/bin/sh");
    let shell = shell.current_dir(site.path("")).args(["-c", &script]);
    assert!(shell.status().is_ok_and(|status| status.success()));
    let trace = Trace::read(&site.path("c.trace"));
    assert!(trace.is_complete());
    assert_eq!(trace.all().resized, 100);
}
