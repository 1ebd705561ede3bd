//! The settings that the rpmalloc documents published, and shorter variants of them.

use crate::Preset;

const BENCHMARKS: &str = "rpmalloc, BENCHMARKS.md";
const CACHE: &str = "rpmalloc, CACHE.md";

/// Creates a preset: `preset!(name, meaning, published, distribution cross loops blocks ops min
/// max)`.
macro_rules! preset {
    ($name:literal, $meaning:literal, $published:expr,
     $shape:literal $cross:literal $loops:literal $blocks:literal $ops:literal $min:literal $max:literal) => {
        Preset {
            name: $name,
            meaning: $meaning,
            values: &[
                ("mode", 0),
                ("distribution", $shape),
                ("cross", $cross),
                ("loops", $loops),
                ("blocks", $blocks),
                ("ops", $ops),
                ("min", $min),
                ("max", $max),
            ],
            published: $published,
        }
    };
}

/// Short presets keep distribution, cross rate, blocks, ops and sizes, and run fewer loops. Quick
/// presets also have a tenth of the blocks and ops.
#[rustfmt::skip]
pub static PRESETS: &[Preset] = &[
    preset!("16-1000", "even sizes of 16 to 1000 bytes, short", None, 0 2 160 50_000 5000 16 1000),
    preset!("16-8000", "linear falloff from 16 to 8000 bytes, short", None, 1 2 60 50_000 5000 16 8000),
    preset!("16-16000", "linear falloff from 16 to 16000 bytes, short", None, 1 2 40 50_000 5000 16 16_000),
    preset!("128-64000", "exponential falloff from 128 to 64000 bytes, short", None, 2 2 40 30_000 3000 128 64_000),
    preset!("512-160000", "exponential falloff from 512 to 160000 bytes, short", None, 2 2 24 20_000 2000 512 160_000),
    preset!("cache-study", "even sizes of 16 to 16000 bytes, half of 150000 blocks in each loop, no hand-off, short", None, 0 0 2 150_000 75_000 16 16_000),
    preset!("quick-16-1000", "16-1000 with a tenth of the blocks", None, 0 2 400 5000 500 16 1000),
    preset!("quick-16-8000", "16-8000 with a tenth of the blocks", None, 1 2 60 5000 500 16 8000),
    preset!("quick-16-16000", "16-16000 with a tenth of the blocks", None, 1 2 40 5000 500 16 16_000),
    preset!("quick-128-64000", "128-64000 with a tenth of the blocks", None, 2 2 40 3000 300 128 64_000),
    preset!("quick-512-160000", "512-160000 with a tenth of the blocks", None, 2 2 24 2000 200 512 160_000),
    preset!("quick-cache-study", "cache-study with a tenth of the blocks", None, 0 0 2 15_000 7500 16 16_000),
    preset!("published-16-1000", "as published: 20000 loops", Some(BENCHMARKS), 0 2 20_000 50_000 5000 16 1000),
    preset!("published-16-8000", "as published: 20000 loops", Some(BENCHMARKS), 1 2 20_000 50_000 5000 16 8000),
    preset!("published-16-16000", "as published: 20000 loops", Some(BENCHMARKS), 1 2 20_000 50_000 5000 16 16_000),
    preset!("published-128-64000", "as published: 20000 loops", Some(BENCHMARKS), 2 2 20_000 30_000 3000 128 64_000),
    preset!("published-512-160000", "as published: 20000 loops; the document's heading says [512, 16000], its parameters 512 160000", Some(BENCHMARKS), 2 2 20_000 20_000 2000 512 160_000),
    preset!("published-cache-study", "as published: 1000 loops", Some(CACHE), 0 0 1000 150_000 75_000 16 16_000),
];
