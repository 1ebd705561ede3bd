//! Compares the time to load a trace with that of decompressing its content by `zstd -d`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use heapdrome_trace::{Operation, Reader, Step, Time, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{chunks, recording};

const OPERATIONS: u32 = 10_000_000;

/// Number of repetitions of each reading; the fastest counts.
const REPEATS: u32 = 30;

/// Mean length of runs that nothing can predict. Loading misses the goal there: a mispredicted
/// branch for every second operation takes as long as all of zstd.
const COIN: u32 = 2;

/// Returns a trace of many sizes, whose frees mostly take young blocks, and of two threads. Makes
/// and frees follow each other in runs of this mean length.
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

fn fastest(mut work: impl FnMut()) -> Duration {
    let times = (0..REPEATS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.min().expect("more than one")
}

/// Adds up everything that is read, so that the compiler cannot omit a part.
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

#[test]
#[ignore = "a measurement: cargo test --release -p heapdrome-trace speed -- --ignored --nocapture"]
fn loading_takes_at_most_twice_the_time_of_zstd() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("content.zst");
    let mut slow = Vec::new();
    for run in [COIN, 8, 32] {
        let trace = trace(run);
        let content: Vec<u8> = chunks(&trace).flat_map(|chunk| chunk.content).collect();
        let alone = zstd::bulk::compress(&content, 3).expect("memory");
        std::fs::write(&file, &alone).expect("a temporary file");
        if decompress(&file).is_none() {
            println!("skipped: the program zstd is not installed");
            return;
        }
        let zstd = fastest(|| decompress(&file).expect("it is installed"));
        let loading = fastest(|| {
            std::hint::black_box(load(&trace));
        });
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(OPERATIONS);
        println!(
            "runs of {run}: {:.2} bytes an operation, {:.2} compressed; nanoseconds an operation: \
             zstd -d {:.2}, loading {:.2}",
            content.len() as f64 / f64::from(OPERATIONS),
            trace.len() as f64 / f64::from(OPERATIONS),
            each(zstd),
            each(loading),
        );
        if run > COIN && loading > 2 * zstd {
            slow.push(run);
        }
    }
    assert!(slow.is_empty(), "loading is too slow in runs of {slow:?}");
}
