//! Tests of `heapdrome record` where files have no room, and where it may not write.

use std::process::Command;

use heapdrome_trace::Ending;

use crate::record::Trace;
use crate::support::{Site, recorded_program};

#[test]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    let site = Site::new();
    let program = recorded_program();
    let arguments = [
        "record",
        "-o",
        "/dev/full",
        "--force",
        "--",
        &program,
        "signals",
        "1",
    ];
    let outcome = site.run(&arguments);
    outcome.complains(4, &["cannot write the trace: No space left on device"]);
    assert!(outcome.stdout.starts_with("handled "), "{}", outcome.stdout);
}

#[test]
fn a_limit_on_files_ends_the_recording_and_not_the_program() {
    let site = Site::new();
    let script = format!(
        "ulimit -f 100; '{}' chain 10 && echo fine",
        recorded_program()
    );
    let outcome = site.run(&["record", "--", "/bin/sh", "-c", &script]);
    outcome.says(0, &["a process was not recorded: shared memory"]);
    for show in [&["trace", "info"][..], &["profile"]] {
        let shown = site.run(&[show, &["heapdrome.trace"]].concat());
        shown.ends_with(0);
        let line = "ot recorded: a process: shared memory";
        assert!(shown.stdout.contains(line), "{}", shown.stdout);
    }
}

#[test]
fn a_limit_on_the_length_of_the_trace_ends_the_recording_and_not_the_command() {
    let site = Site::new();
    let heapdrome = env!("CARGO_BIN_EXE_heapdrome");
    // The limit, 2048 blocks of 512 bytes, is about twice the size of a ring, and less than the
    // size of the trace.
    let script = format!(
        "ulimit -f 2048; exec '{heapdrome}' record -o l.trace -- '{}' threads 400000",
        recorded_program()
    );
    let mut shell = Command::new("/bin/sh");
    let shell = shell.current_dir(site.path("")).args(["-c", &script]);
    let output = shell.output().expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    let words = "heapdrome: cannot write the trace: File too large (os error 27)\n";
    assert_eq!(told, words);
    let trace = Trace::read(&site.path("l.trace"));
    assert!(matches!(trace.ending, Some(Ending::CutOff { .. })));
    assert!(trace.all().made > 10_000);
}

/// Runs a shell script that may mount file systems, invisible to other processes. Returns its
/// status and its standard error; `None` if this user may not mount.
fn with_mounts(site: &Site, script: &str) -> Option<(Option<i32>, String)> {
    let shell = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c"]);
        let output = unshare.arg(script).current_dir(site.path("")).output();
        output.expect("util-linux")
    };
    let may_mount = shell("mount -t tmpfs none /dev/shm").status.success();
    let output = may_mount.then(|| shell(script))?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.code(), told))
}

#[test]
fn a_full_file_system_ends_the_recording_and_leaves_a_readable_trace() {
    let site = Site::new();
    std::fs::create_dir(site.path("small")).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o size=512k none small && '{}' record -o small/t.trace -- '{}' threads 400000
        status=$?; cp small/t.trace t.trace; exit $status",
        env!("CARGO_BIN_EXE_heapdrome"),
        recorded_program()
    );
    let Some((status, told)) = with_mounts(&site, &script) else {
        return;
    };
    let words = "heapdrome: cannot write the trace: No space left on device (os error 28)\n";
    assert_eq!((status, &*told), (Some(4), words));
    let trace = Trace::read(&site.path("t.trace"));
    assert!(matches!(trace.ending, Some(Ending::CutOff { .. })));
    assert!(trace.all().made > 1000);
}

#[test]
fn unusable_shared_memory_is_replaced_by_another_folder() {
    for options in ["ro", "size=64k"] {
        let site = Site::new();
        let script = format!(
            "mount -t tmpfs -o {options} none /dev/shm && exec '{}' record -o t.trace -- '{}' chain 10",
            env!("CARGO_BIN_EXE_heapdrome"),
            recorded_program()
        );
        let Some((status, told)) = with_mounts(&site, &script) else {
            return;
        };
        assert_eq!(status, Some(0), "{told}");
        assert_eq!(Trace::read(&site.path("t.trace")).all().resized, 100);
    }
}

#[test]
fn an_output_folder_without_the_right_to_write_is_refused() {
    let site = Site::new();
    std::fs::create_dir(site.path("closed")).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o ro none closed && exec '{}' record -o closed/t.trace -- echo started",
        env!("CARGO_BIN_EXE_heapdrome")
    );
    let Some((status, told)) = with_mounts(&site, &script) else {
        return;
    };
    assert_eq!(status, Some(4), "{told}");
    assert!(
        told.starts_with("heapdrome: cannot write closed/t.trace: "),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}
