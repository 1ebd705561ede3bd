//! Tests of traces on the command line: output, written files, and refused input.

use std::io::Read as _;
use std::process::Stdio;

use heapdrome_trace::{
    Beginning, Finish, Operation, Process, Reader, Record, Recording, Step, Thread, Time, Writer,
    summarize,
};

use crate::support::Site;

/// Writes the operations of one process, 1 ms apart: `pairs` allocations, then a failed call. Every
/// allocation except the first is followed by the free of the block before it.
fn operations(writer: &mut Writer<Vec<u8>>, process: u32, pairs: u64) {
    let mut time = Time(0);
    let mut add = |operation| {
        time.0 += 1_000_000;
        let step = Step {
            thread: 0,
            time,
            operation,
            stack: None,
        };
        writer.operation(process, step).expect("in order");
    };
    for block in 0..pairs {
        add(Operation::Make {
            function: 0,
            size: 100,
            alignment: 0,
        });
        if block > 0 {
            add(Operation::Free {
                function: 1,
                block: block - 1,
            });
        }
    }
    add(Operation::Fail {
        function: 0,
        size: 1 << 60,
        alignment: 0,
    });
}

/// Returns a trace of several processes, each with this number of pairs.
fn trace(processes: u32, pairs: u64) -> Vec<u8> {
    let recording = Recording {
        functions: vec!["malloc".into(), "free".into()],
        command: vec!["./program".into(), "two words".into()],
        began: 1_700_000_000_000_000_000,
        heapdrome: "0.1.0".into(),
        page_bytes: 4096,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("memory");
    let time = Time(0);
    for process in 0..processes {
        let begins = Record::Process(Process {
            process,
            pid: 4000 + process,
            program: "/bin/program".into(),
            allocator: "libc.so.6".into(),
            time,
            beginning: Beginning::Executed,
        });
        let thread = Record::Thread(Thread {
            process,
            thread: 0,
            tid: 4000 + process,
            time,
        });
        writer.record(begins).expect("memory");
        writer.record(thread).expect("memory");
        operations(&mut writer, process, pairs);
        let ends = Record::Finish(Finish {
            process,
            time: Time(1_000_000_000_000),
            peak_resident: None,
            minor_faults: None,
            processor_time: None,
            waited: 0,
            gave_up: false,
            timed: None,
        });
        writer.record(ends).expect("memory");
    }
    writer.finish().expect("memory")
}

/// Creates a site with two traces: `one.trace` of one process with a thousand pairs, and
/// `two.trace` of two processes with ten pairs each.
fn site() -> Site {
    let site = Site::new();
    site.file("one.trace", trace(1, 1000));
    site.file("two.trace", trace(2, 10));
    site
}

fn count(site: &Site, name: &str) -> u64 {
    let bytes = std::fs::read(site.path(name)).expect("it was written");
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    summarize(&mut reader).expect("a trace").operations
}

#[test]
fn info_prints_what_was_recorded() {
    let outcome = site().run(&["trace", "info", "two.trace"]);
    outcome.ends_with(0);
    for words in [
        "./program 'two words'",
        "2023-11-14T22:13:20Z for 1000 s, by heapdrome 0.1.0",
        "with pages of 4.00 KiB",
        "state complete; 0 operations",
        "operations 40",
        "bytes an operation before compression",
        "0 4000 1 20 10 100 B 200 B /bin/program",
        "1 4001 1 20 10 100 B 200 B /bin/program",
    ] {
        outcome.tells(words);
    }
}

#[test]
fn what_is_cut_in_two_and_merged_has_all_operations() {
    let site = site();
    let cut = ["trace", "cut", "one.trace"];
    // At 900 ms one block is live. The second part begins by allocating it.
    let first = [&cut[..], &["--to", "900ms", "-o", "a.trace"]].concat();
    let second = [&cut[..], &["--from", "900ms", "-o", "b.trace"]].concat();
    site.run(&first).complains(0, &["wrote a.trace"]);
    site.run(&second).complains(0, &["wrote b.trace"]);
    let (a, b) = (count(&site, "a.trace"), count(&site, "b.trace"));
    assert_eq!((count(&site, "one.trace"), a), (2000, 899));
    assert!((1..=2).contains(&(a + b - 2000)), "{b}");
    site.run(&["trace", "merge", "a.trace", "b.trace", "-o", "c.trace"])
        .complains(0, &["wrote c.trace"]);
    assert_eq!(count(&site, "c.trace"), a + b);
    let told = site.run(&["trace", "info", "c.trace"]);
    told.ends_with(0);
    told.tells("& ./program");
    let piped = site.run(&["trace", "merge", "a.trace", "b.trace", "-o", "/dev/stdout"]);
    piped.ends_with(0);
    assert!(piped.stdout.starts_with("hdtrace\n"));
}

#[test]
fn every_format_is_printed_or_written() {
    let site = site();
    let text = site.run(&["trace", "export", "two.trace", "--to", "text"]);
    let lines = text.ends_with(0).stdout.lines();
    assert_eq!(lines.filter(|line| !line.starts_with('#')).count(), 40);
    text.tells("1000000 0 0 make malloc 0 100 0");
    let android = ["trace", "export", "one.trace", "--to", "android"];
    let android = site.run(&android);
    android.says(
        0,
        &["wrote standard output: 1,999 operations", "1 failed calls"],
    );
    assert!(
        android
            .stdout
            .starts_with("4000: malloc 0x1000 100\n4000: malloc 0x1010 100\n")
    );
    let bench = [
        "trace",
        "export",
        "one.trace",
        "--to",
        "malloc-bench",
        "-o",
        "one.pb",
    ];
    site.run(&bench)
        .complains(0, &["wrote one.pb: 1,999 operations"]);
    let file = std::fs::read(site.path("one.pb")).expect("written");
    assert!(file.ends_with(&[0x10, 2]), "two numbers are used");
    site.run(&["trace", "export", "two.trace", "--to", "android"])
        .complains(2, &["two.trace", "0, 1", "--process"]);
    site.run(&[
        "trace",
        "export",
        "two.trace",
        "--to",
        "text",
        "--process",
        "5",
    ])
    .complains(2, &["no operations of process 5; there are 0, 1"]);
}

#[test]
fn traces_that_cannot_be_read_are_named_in_one_line() {
    let site = site();
    let whole = trace(1, 1000);
    let mut damaged = whole.clone();
    *damaged.last_mut().expect("bytes") ^= 1;
    site.file("damaged.trace", &damaged);
    let mut newer = whole.clone();
    newer[8] = 3;
    newer.splice(12..16, [0x28, 0x19, 0x49, 0x2b]);
    site.file("newer.trace", &newer);
    site.file("other.trace", "#!/bin/sh\necho hello\n");
    std::fs::create_dir(site.path("folder")).expect("a folder");
    for (name, words) in [
        ("damaged.trace", "the trace is damaged at byte"),
        ("newer.trace", "format version 3"),
        ("other.trace", "other.trace is not a trace of heapdrome"),
        ("missing.trace", "cannot read missing.trace: No such file"),
        ("folder", "folder is a folder; name a trace"),
    ] {
        site.run(&["trace", "info", name])
            .complains(2, &[name, words]);
        site.run(&["trace", "cut", name, "-o", "out"])
            .complains(2, &[name, words]);
        site.run(&["trace", "merge", "one.trace", name, "-o", "out"])
            .complains(2, &[name, words]);
        site.run(&["trace", "export", name, "--to", "android", "-o", "out"])
            .complains(2, &[name, words]);
        assert!(!site.path("out").exists(), "{name}");
    }
    assert_eq!(site.visible_files().len(), 6, "{:?}", site.visible_files());
}

#[test]
fn a_trace_that_was_cut_off_is_used_as_far_as_it_goes() {
    let site = Site::new();
    let whole = trace(2, 1000);
    site.file("cut.trace", &whole[..whole.len() - 1]);
    let told = site.run(&["trace", "info", "cut.trace"]);
    told.ends_with(0);
    told.tells("cut off: all up to byte");
    site.run(&["trace", "cut", "cut.trace", "-o", "out"])
        .says(0, &["cut.trace was cut off; it was read up to byte"]);
    assert_eq!(count(&site, "out"), 4000);
}

#[test]
fn outputs_that_cannot_be_written_stay_as_they_are() {
    let site = site();
    site.file("old", "old");
    let cut = |output: &str| site.run(&["trace", "cut", "one.trace", "-o", output]);
    cut("old").complains(2, &["old exists; pass --force"]);
    cut("one.trace").complains(2, &["one.trace is read; name another"]);
    cut("no/out").complains(4, &["no/out", "there is no folder"]);
    cut("/dev/full").complains(4, &["cannot write /dev/full", "no space is left"]);
    std::fs::create_dir(site.path("folder")).expect("a folder");
    cut("folder").complains(2, &["folder is a folder; name a file"]);
    for format in ["text", "android", "malloc-bench"] {
        let ask = ["trace", "export", "one.trace", "--to", format, "-o"];
        site.run(&[&ask[..], &["old"]].concat())
            .complains(2, &["old exists"]);
        site.run(&[&ask[..], &["/dev/full"]].concat())
            .complains(4, &["cannot write /dev/full", "no space is left"]);
    }
    let ask = [
        "trace",
        "cut",
        "one.trace",
        "--from",
        "2s",
        "--to",
        "1s",
        "-o",
        "out",
    ];
    site.run(&ask)
        .complains(2, &["--from must be earlier than --to"]);
    let old = std::fs::read_to_string(site.path("old")).expect("it is there");
    assert_eq!(old, "old");
    assert_eq!(
        site.visible_files(),
        ["folder", "old", "one.trace", "two.trace"]
    );
    site.run(&["trace", "cut", "one.trace", "-o", "old", "--force"])
        .complains(0, &["wrote old"]);
    assert_eq!(count(&site, "old"), 2000);
}

#[test]
fn standard_output_that_takes_nothing_is_an_error_and_one_that_is_closed_is_none() {
    let site = Site::new();
    site.file("long.trace", trace(1, 200_000));
    for ask in [
        &["trace", "export", "long.trace", "--to", "text"][..],
        &["trace", "cut", "long.trace", "-o", "-"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = site.command(ask);
        let output = command
            .stdout(full.expect("it is there"))
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains("cannot write to standard output") && told.lines().count() == 1);
        let mut command = site.command(ask);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut first = [0; 100];
        let mut pipe = child.stdout.take().expect("a pipe");
        pipe.read_exact(&mut first).expect("something is printed");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{told}");
    }
}
