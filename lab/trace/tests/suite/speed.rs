//! Compares the time to load a trace with that of decompressing its frames by `zstd -d`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use heapdrome_trace::{Operation, Reader, Step, Time, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{chunks, recording};

const OPERATIONS: u32 = 10_000_000;

/// Number of rounds. Each round times both loading and `zstd -d`, and the fastest time of each
/// counts.
const ROUNDS: u32 = 30;

/// Variable that names the files of further traces to measure, separated by colons.
const TRACES: &str = "TRACES";

/// Mean lengths of runs of makes or frees in generated traces. The end of a run is unpredictable.
const RUNS: [u32; 3] = [2, 8, 32];

/// Minimum mean length of runs at which the test limits the time to load a trace. In shorter runs,
/// mispredicted branches alone take as long as all of zstd.
const PREDICTABLE: u32 = 32;

/// Returns a trace of two threads with many sizes. Each free takes one of the 40 youngest live
/// blocks. Makes and frees alternate in runs of the mean length `run`.
fn trace(run: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut live, mut made, mut time, mut makes) = (Vec::new(), 0, 0, true);
    for number in 0..OPERATIONS {
        time += random.random_range(20..600);
        makes ^= random.random_range(0..run) == 0;
        let operation = if live.len() > 5_000 || (!makes && !live.is_empty()) {
            let young = random.random_range(0..live.len().min(40));
            let block = live.swap_remove(live.len() - 1 - young);
            Operation::Free { function: 2, block }
        } else {
            live.push(made);
            made += 1;
            let size = random.random_range(1..40_u64) * random.random_range(1..4) * 8;
            Operation::Make {
                function: 0,
                size,
                alignment: 0,
            }
        };
        let step = Step {
            thread: number / 300 % 2,
            time: Time(time),
            operation,
            stack: None,
        };
        writer.operation(0, step).expect("in order");
    }
    writer.finish().expect("memory")
}

/// Returns the duration of `work`.
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Reads a trace and adds up its content, so that the compiler cannot omit a part.
fn load(trace: &[u8]) -> u64 {
    let mut reader = Reader::new(trace).expect("a trace");
    let mut sum = 0_u64;
    while let Some(chunk) = reader.next_chunk().expect("a trace") {
        let add = |_, step: Step| {
            let value = match step.operation {
                Operation::Make { size, .. } => size,
                Operation::Free { block, .. } => block,
                _ => 0,
            };
            sum = sum.wrapping_add(value ^ step.time.0 ^ u64::from(step.thread));
        };
        chunk.visit(add).expect("a trace");
    }
    sum
}

/// Runs `zstd -d` on a file; returns `None` if zstd is not installed.
fn decompress(file: &Path) -> Option<()> {
    let mut command = Command::new("zstd");
    command.args(["-q", "-d", "-c"]).arg(file);
    let status = command.stdout(Stdio::null()).status().ok()?;
    assert!(status.success());
    Some(())
}

/// Compares loading a trace with decompressing the trace's own frames, and returns the ratio of the
/// times; `None` if zstd is not installed.
fn compare(name: &str, trace: &[u8]) -> Option<f64> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frames.zst");
    let (mut operations, mut content, mut frames) = (0.0, 0, Vec::new());
    for chunk in chunks(trace) {
        operations += f64::from(chunk.operations);
        content += chunk.content.len();
        frames.extend(chunk.frame);
    }
    std::fs::write(&file, &frames).expect("a temporary file");
    decompress(&file)?;
    let (mut zstd, mut loading) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        zstd = zstd.min(time(|| decompress(&file).expect("it is installed")));
        loading = loading.min(time(|| {
            std::hint::black_box(load(trace));
        }));
    }
    let each = |time: Duration| time.as_nanos() as f64 / operations;
    let ratio = loading.div_duration_f64(zstd);
    println!(
        "{name}: {operations} operations, each {:.2} bytes, {:.2} compressed, {:.2} ns in zstd -d, \
         {:.2} ns in loading; ratio {ratio:.2}",
        content as f64 / operations,
        trace.len() as f64 / operations,
        each(zstd),
        each(loading),
    );
    Some(ratio)
}

/// Returns the traces that [`TRACES`] names, with their names.
fn further() -> impl Iterator<Item = (String, Vec<u8>)> {
    let names = std::env::var(TRACES).unwrap_or_default();
    let names: Vec<String> = names.split_terminator(':').map(str::to_owned).collect();
    names.into_iter().map(|name| {
        let trace = std::fs::read(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, trace)
    })
}

#[test]
#[ignore = "a measurement: cargo test --release -p heapdrome-trace speed -- --ignored --nocapture"]
fn loading_takes_at_most_twice_the_time_of_zstd() {
    let generated = RUNS.map(|run| (format!("runs of {run}"), run >= PREDICTABLE, run));
    let generated = generated
        .into_iter()
        .map(|(name, must, run)| (name, must, trace(run)));
    let further = further().map(|(name, trace)| (name, true, trace));
    let mut slow = Vec::new();
    for (name, must, trace) in generated.chain(further) {
        let Some(ratio) = compare(&name, &trace) else {
            println!("skipped: the program zstd is not installed");
            return;
        };
        if must && ratio > 2.0 {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "loading is too slow: {slow:?}");
}
