//! Tests of traces that are samples, and of traces with stacks.

use heapdrome_trace::{Frame, Module, Operation, Record, Recording, Stack, Step, Time, Writer};

use crate::support::Site;

/// Returns a trace of 1000 blocks that states these distances of sample points and of stacks. It
/// has one stack, in a module whose file is missing.
fn trace(sample_bytes: u64, stack_bytes: u64) -> Vec<u8> {
    trace_of(
        "/nowhere/libapp.so",
        [0x1234, 0x5678],
        sample_bytes,
        stack_bytes,
    )
}

/// Returns a trace of 1000 blocks that states these distances of sample points and of stacks. It
/// has one stack, of these addresses in the module `path`.
fn trace_of(path: &str, addresses: [u64; 2], sample_bytes: u64, stack_bytes: u64) -> Vec<u8> {
    let recording = Recording {
        functions: vec!["malloc".to_owned(), "free".to_owned()],
        command: vec!["./app".to_owned()],
        page_bytes: 4096,
        sample_bytes,
        stack_bytes,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("begun");
    let module = Module {
        module: 0,
        path: path.to_owned(),
        build_id: String::new(),
    };
    writer.record(Record::Module(module)).expect("recorded");
    let frame = |address| Frame {
        module: Some(0),
        address,
    };
    let stack = Stack {
        stack: 0,
        frames: addresses.map(frame).to_vec(),
    };
    writer.record(Record::Stack(stack)).expect("recorded");
    for place in 0..1000 {
        let operation = Operation::Make {
            function: 0,
            size: 100,
            alignment: 0,
        };
        let step = Step {
            thread: 0,
            time: Time(place * 160),
            operation,
            stack: (stack_bytes > 0).then_some(0),
        };
        writer.operation(0, step).expect("written");
    }
    writer.finish().expect("finished")
}

#[test]
fn a_sample_is_not_replayed() {
    let site = Site::new();
    site.file("app.trace", trace(524_288, 0));
    for line in [
        &["replay", "app.trace"][..],
        &["race", "--rounds", "1", "--trace", "app.trace"],
    ] {
        let words = [
            "app.trace: the trace is a sample, of one block for every 524288 bytes requested",
            "record the program again without sampling",
        ];
        site.run(line).complains(2, &words);
    }
}

#[test]
fn info_prints_the_sample_and_the_stacks() {
    let site = Site::new();
    site.file("app.trace", trace(4096, 524_288));
    let outcome = site.run(&["trace", "info", "app.trace"]);
    outcome.ends_with(0);
    outcome.tells("sample one block for every 4.00 KiB requested");
    outcome.tells(
        "stacks 1,000 operations have one of 1 stacks, in code of 1 files; one block for every 512 KiB",
    );
    site.file("plain.trace", trace(0, 0));
    let plain = site.run(&["trace", "info", "plain.trace"]);
    assert!(!plain.ends_with(0).stdout.contains("sample"));
}

#[test]
fn figures_of_a_sample_are_estimates() {
    let site = Site::new();
    site.file("app.trace", trace(4096, 0));
    let outcome = site.run(&["profile", "app.trace"]);
    outcome.ends_with(0);
    // A block of 100 bytes is sampled with the probability 1 - exp(-100 / 4096) = 0.024118.
    outcome.tells("Sampled: 1,000 blocks of");
    outcome.tells("the program requested about 3.95 MiB (");
    outcome.tells("estimates, with 95% intervals in parentheses");
}

const SOURCE: &str = "void *malloc(unsigned long);
void *load(void) { return malloc(100); }
int main(void) { return load() == 0; }
";

/// Builds the program [`SOURCE`], and returns the addresses of its functions.
fn built(site: &Site) -> [u64; 2] {
    site.file("app.c", SOURCE);
    let run = |program: &str, words: &[&str]| {
        let mut command = std::process::Command::new(program);
        let output = command.args(words).current_dir(site.path("")).output();
        let output = output.expect("it is installed");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    run("gcc", &["-g", "-O0", "-no-pie", "-o", "app", "app.c"]);
    let names = run("nm", &["app"]);
    ["load", "main"].map(|name| {
        let line = names
            .lines()
            .find(|line| line.ends_with(&format!(" T {name}")));
        let address = line.and_then(|line| line.split_whitespace().next());
        u64::from_str_radix(address.expect("a function"), 16).expect("hexadecimal")
    })
}

#[test]
fn functions_are_named_in_every_form() {
    let site = Site::new();
    let addresses = built(&site);
    let path = site.path("app");
    let path = path.to_str().expect("plain");
    site.file("app.trace", trace_of(path, addresses, 0, 1));
    let line = "profile app.trace -o p.html --csv p.csv --pprof p.pb.gz";
    let outcome = site.run(&line.split_whitespace().collect::<Vec<_>>());
    outcome.ends_with(0);
    outcome.tells("Requested by: 100% of the bytes at the peak are requested by load.");
    outcome.tells("97.7 KiB 1,000 100% load < main");
    let read = |name: &str| std::fs::read_to_string(site.path(name)).expect("written");
    assert!(read("p.html").contains("<title>load: 97.7 KiB, 100%</title>"));
    assert!(read("p.csv").contains("all,,stack,main;load,peak_bytes,100000\n"));
    site.file("gone.trace", trace(0, 1));
    let gone = site.run(&["profile", "gone.trace"]);
    gone.ends_with(0);
    gone.tells("requested by libapp.so+0x1234");
    gone.tells("No names of functions in /nowhere/libapp.so: it cannot be read: No such file");
}
