//! Texts that describe the workload, its parameters and its presets to a user.

use heapdrome_workloads::{Description, FigureText, Parameter, Parameters, Preset};

use crate::settings::{MOST_SETS, MOST_SIZE, MOST_THREADS, Settings, expected_peak, with_margin};

/// Description of the workload. `heapdrome workloads` prints it, and `heapdrome race` reads its
/// parameters.
pub static DESCRIPTION: Description = Description {
    workload: None,
    name: "catalog",
    summary: "data sets loaded on an asynchronous executor, joined, formatted and dropped across \
              threads",
    models: "A service that loads a catalog into memory. Tasks of an asynchronous executor read \
             compressed files and deserialise them into ordered maps of categories, entries, \
             chapters and items with strings, options and nested records. Then they join the maps \
             and format hundreds of thousands of names and URLs for each data set. Finally \
             everything is dropped, mostly by threads that did not allocate it. The heap holds \
             gigabytes of small, long-lived blocks, like that of a long-running server.",
    origin: "The alloc-perf-test document, which runs it with n=8 and n=4 at the default size. \
             Written from the description; heapdrome generates the data once, from a seed.",
    meaning: "One operation is one record formatted: a name and a URL. Times are those from the \
              first task to the last drop. peak_requested_bytes is counted once, when the data are \
              generated, and is valid for every allocator; overhead is the peak of resident memory \
              divided by it.",
    silence: "Nothing about the speed of single allocations: reading, decompressing and formatting \
              take a good part of the time. Nothing about behaviour over hours: every run starts \
              with fresh memory.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: |_| Ok(()),
    needs: |parameters| with_margin(expected_peak(&Settings::of(parameters))).0,
};

static PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "n",
        "",
        8,
        [1, MOST_SETS as u64],
        "data sets to load, `parallel` of them at a time",
    ),
    Parameter::new(
        "size",
        "",
        100,
        [1, MOST_SIZE as u64],
        "size of each data set, in percent of the default; bytes grow quadratically with it",
    ),
    Parameter::new(
        "parallel",
        "",
        8,
        [1, MOST_THREADS as u64],
        "data sets that are loaded and in memory at the same time",
    ),
    Parameter::new(
        "threads",
        "",
        16,
        [1, MOST_THREADS as u64],
        "threads of the executor",
    ),
    Parameter::new(
        "seed",
        "",
        1,
        [0, u64::MAX],
        "seed of the random draws: equal seeds give equal data",
    ),
];

static PRESETS: &[Preset] = &[
    Preset::own("published", "eight data sets at a time on 16 threads", &[])
        .published("the alloc-perf-test document"),
    Preset::own(
        "quick",
        "two small data sets on four threads",
        &[("n", 2), ("size", 20), ("parallel", 2), ("threads", 4)],
    ),
];

static FIGURES: &[FigureText] = &[
    FigureText::less("user_s", "processor time of the program itself"),
    FigureText::less("system_s", "processor time of the kernel for it"),
    FigureText::less(
        "data_bytes",
        "size of the data sets, serialised and not compressed",
    ),
    FigureText::less(
        "dropped_elsewhere_share",
        "share of categories dropped by a thread that did not join them",
    ),
];

impl Settings {
    /// Converts checked parameters of [`DESCRIPTION`] to settings.
    pub fn of(parameters: &Parameters) -> Self {
        let value = |name| parameters.get(name).unwrap_or(0);
        // Every value except the seed is at most MOST_THREADS, so the conversion never fails.
        let small = |name| u32::try_from(value(name)).unwrap_or(u32::MAX);
        Self {
            n: small("n"),
            size: small("size"),
            parallel: small("parallel"),
            threads: small("threads"),
            seed: value("seed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Settings, String> {
        let read = Parameters::parse(&DESCRIPTION, words);
        let read = read.map_err(|error| error.to_string())?;
        assert_eq!(read.words().join(" "), Settings::of(&read).words());
        Ok(Settings::of(&read))
    }

    #[test]
    fn the_defaults_are_those_of_the_program() {
        assert_eq!(read(&[]), Ok(Settings::default()));
    }

    #[test]
    fn words_are_read_back() {
        let settings = read(&["quick", "n=1", "seed=0", "size=10"]).expect("right");
        assert_eq!((settings.n, settings.seed, settings.size), (1, 0, 10));
        assert_eq!(settings.threads, 4);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for word in ["n=0", "n=257", "size=-1", "threads=x", "speed=1", "seed="] {
            let told = read(&[word]).expect_err(word);
            assert!(told.contains("catalog") && !told.contains('\n'), "{told}");
        }
        assert!(read(&["n=1", "n=1"]).is_err());
    }
}
