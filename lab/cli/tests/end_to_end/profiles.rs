//! Tests of `heapdrome profile`: its output formats, and the traces and files that it cannot use.

use heapdrome_trace::{
    Beginning, Finish, Operation, Process, Record, Recording, Step, Time, Writer,
};

use crate::support::Site;

/// Returns a trace of one program with this number of operations, as [`step`] makes them.
fn trace(operations: u64) -> Vec<u8> {
    let recording = Recording {
        functions: vec!["malloc".to_owned(), "free".to_owned()],
        command: vec!["./app".to_owned()],
        page_bytes: 4096,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("begun");
    let process = Process {
        process: 0,
        pid: 7,
        program: "/bin/app".to_owned(),
        allocator: String::new(),
        time: Time(0),
        beginning: Beginning::Executed,
    };
    writer.record(Record::Process(process)).expect("recorded");
    for place in 0..operations {
        writer.operation(0, step(place)).expect("written");
    }
    let finish = Finish {
        process: 0,
        time: Time(operations * 160),
        peak_resident: None,
        minor_faults: None,
        processor_time: None,
        waited: 0,
        gave_up: false,
        timed: None,
    };
    writer.record(Record::Finish(finish)).expect("recorded");
    writer.finish().expect("finished")
}

/// Returns a step of a repeating pattern: three blocks are made, then the first of them is freed.
fn step(place: u64) -> Step {
    let operation = match place % 4 {
        3 => Operation::Free {
            function: 1,
            block: place / 4 * 3,
        },
        _ => Operation::Make {
            function: 0,
            size: place % 1000,
            alignment: 0,
        },
    };
    let (thread, time) = (0, Time(place * 160));
    Step {
        thread,
        time,
        operation,
        stack: None,
    }
}

/// Creates a site with a trace, as `app.trace`.
fn site() -> Site {
    let site = Site::new();
    site.file("app.trace", trace(4000));
    site
}

fn run(site: &Site, line: &str) -> crate::support::Outcome {
    site.run(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn a_trace_is_summed_up_and_written_in_every_form() {
    let site = site();
    let line = "profile app.trace -o p.html --pprof h.pb.gz --perfetto t.json --csv f.csv";
    let outcome = run(&site, line);
    outcome.ends_with(0);
    outcome.tells("./app, profile of 640 µs Memory: At its peak the program holds");
    for name in ["p.html", "h.pb.gz", "t.json", "f.csv"] {
        assert!(
            outcome.stderr.contains(&format!("wrote {name}")),
            "{}",
            outcome.stderr
        );
    }
    let read = |name: &str| std::fs::read(site.path(name)).expect("written");
    assert!(read("p.html").starts_with(b"<!DOCTYPE html>"));
    assert!(read("h.pb.gz").starts_with(b"\x1f\x8b"));
    assert!(serde_json::from_slice::<serde_json::Value>(&read("t.json")).is_ok());
    assert!(read("f.csv").starts_with(b"process,program,table,at,name,value\n"));
    let files = ["app.trace", "f.csv", "h.pb.gz", "p.html", "t.json"];
    assert_eq!(site.visible_files(), files);
}

#[test]
fn standard_output_takes_one_form_in_place_of_the_summary() {
    let site = site();
    let page = run(&site, "profile app.trace -o -");
    assert!(page.ends_with(0).stdout.starts_with("<!DOCTYPE html>"));
    let csv = run(&site, "profile app.trace --csv -");
    assert!(csv.ends_with(0).stdout.starts_with("process,program"));
    run(&site, "profile app.trace -o - --csv -").complains(2, &["--output - and --csv -"]);
    run(&site, "profile app.trace --csv x --perfetto x").complains(2, &["go to the same place"]);
    assert_eq!(site.visible_files(), ["app.trace"]);
}

#[test]
fn a_trace_comes_from_standard_input() {
    let site = site();
    let mut command = site.command(&["profile", "-"]);
    command.stdin(std::fs::File::open(site.path("app.trace")).expect("it is there"));
    let read = site.finish(command);
    assert_eq!(
        read.ends_with(0).stdout,
        run(&site, "profile app.trace").stdout
    );
    run(&site, "profile -").complains(2, &["standard input is not a trace of heapdrome"]);
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let site = site();
    let whole = trace(40_000);
    let refuse = |name: &str, content: &[u8], words: &[&str]| {
        site.file(name, content);
        let line = ["profile", name, "--csv", "out.csv"];
        site.run(&line).complains(2, &[&[name], words].concat());
    };
    refuse("empty", b"", &["is empty"]);
    refuse(
        "text",
        b"some text that is no trace",
        &["is not a trace of heapdrome"],
    );
    refuse(
        "short",
        &whole[..7],
        &["was cut off before its first complete chunk"],
    );
    let mut newer = whole.clone();
    newer[8] = 9;
    refuse("newer", &newer, &["newer"]);
    for place in [20, 40, whole.len() / 2, whole.len() - 3] {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x40;
        refuse(
            "damaged",
            &damaged,
            &["cannot profile damaged: the trace is damaged at byte"],
        );
    }
    run(&site, "profile missing").complains(2, &["cannot read missing: No such file"]);
    std::fs::create_dir(site.path("folder")).expect("a folder");
    run(&site, "profile folder").complains(2, &["cannot read folder: it is a folder"]);
    run(&site, "profile app.trace/x").complains(2, &["cannot read app.trace/x"]);
    assert!(!site.visible_files().contains(&"out.csv".to_owned()));
}

#[test]
fn a_trace_that_was_cut_off_is_profiled_and_said_to_be() {
    let site = Site::new();
    let whole = trace(400_000);
    site.file("cut.trace", &whole[..whole.len() - 10]);
    let outcome = run(&site, "profile cut.trace");
    outcome.ends_with(0);
    outcome.tells("Incomplete: The trace was cut off after");
}

#[test]
fn files_that_are_there_stay_unless_forced() {
    let site = site();
    site.file("old", "old");
    for option in ["-o", "--pprof", "--perfetto", "--csv"] {
        let ask = ["profile", "app.trace", option, "old"];
        site.run(&ask).complains(2, &["old exists; pass --force"]);
        assert_eq!(
            std::fs::read(site.path("old")).expect("it is there"),
            b"old"
        );
        let own = ["profile", "app.trace", option, "app.trace", "--force"];
        site.run(&own)
            .complains(2, &["app.trace is an input; name another file"]);
    }
    run(&site, "profile app.trace --csv old --force").ends_with(0);
    assert_ne!(
        std::fs::read(site.path("old")).expect("it is there"),
        b"old"
    );
}

#[test]
fn files_that_cannot_be_written() {
    let site = site();
    let missing = ["cannot write no/p.html", "there is no folder no; create it"];
    run(&site, "profile app.trace -o no/p.html").complains(4, &missing);
    std::fs::create_dir(site.path("folder")).expect("a folder");
    run(&site, "profile app.trace -o folder")
        .complains(4, &["cannot write folder: it is a folder"]);
    let full = run(&site, "profile app.trace --pprof /dev/full");
    full.says(4, &["cannot write /dev/full", "no space is left"]);
    let line = "\"$0\" profile app.trace >/dev/full";
    let words = ["-c", line, env!("CARGO_BIN_EXE_heapdrome")];
    let printed = site.finish(site.program("sh", &words));
    printed.complains(4, &["cannot write to standard output"]);
    assert_eq!(site.visible_files(), ["app.trace", "folder"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let site = site();
    let line = "\"$0\" profile app.trace --csv - | head -n 1; echo ${PIPESTATUS[0]}";
    let words = ["-c", line, env!("CARGO_BIN_EXE_heapdrome")];
    let outcome = site.finish(site.program("bash", &words));
    assert_eq!(outcome.ends_with(0).stderr, "");
    assert!(outcome.stdout.ends_with("\n0\n"), "{}", outcome.stdout);
}
