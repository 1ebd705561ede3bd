//! What a reader should know of the workload, its parameters and its small form.

use heapdrome_workloads::{Description, FigureText, Parameter, Parameters, Preset};

use crate::settings::{MOST_SETS, MOST_SIZE, MOST_THREADS, Settings, expected_peak, with_margin};

/// The workload, as `heapdrome workloads` explains it and `heapdrome race` reads its parameters.
pub static DESCRIPTION: Description = Description {
    workload: None,
    name: "catalog",
    summary: "data sets loaded on an asynchronous executor, joined, formatted and dropped across \
              threads",
    models: "A service that loads a catalog into memory: compressed files are read and \
             deserialised into ordered maps of categories, entries, chapters and items with \
             strings, options and nested records, by tasks of an asynchronous executor; then joined, \
             and hundreds of thousands of names and URLs formatted for each data set; then all of it \
             is dropped, mostly by other threads than those that allocated it. Gigabytes of small, \
             long-lived blocks: what a long-running server asks of its allocator.",
    origin: "The alloc-perf-test document, which runs it with n=8 and n=4 at the default size. \
             Written from the description; the data are drawn by heapdrome, from a seed, and \
             generated once.",
    meaning: "One operation is one record formatted: a name and a URL. Times are those from the \
              first task to the last drop. peak_requested_bytes is counted once, when the data are \
              generated, and holds for every allocator; overhead is the peak of resident memory over \
              it.",
    silence: "How fast an allocator hands out single blocks: reading, decompressing and formatting \
              take a good part of the time. Nor what happens over hours: every run starts with fresh \
              memory.",
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
        "data sets to load, as many at a time as parallel says",
    ),
    Parameter::new(
        "size",
        "",
        100,
        [1, MOST_SIZE as u64],
        "size of each data set, in percent of the default; bytes grow with its square",
    ),
    Parameter::new(
        "parallel",
        "",
        8,
        [1, MOST_THREADS as u64],
        "data sets that are loaded at a time, and live at the same time",
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
        "where random draws begin: the same seed gives the same data",
    ),
];

static PRESETS: &[Preset] = &[
    Preset::own("published", "eight data sets at once on 16 threads", &[])
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
        "share of categories that another thread dropped than had joined them",
    ),
];

impl Settings {
    /// The settings that checked parameters of [`DESCRIPTION`] stand for.
    pub fn of(parameters: &Parameters) -> Self {
        let value = |name| parameters.get(name).unwrap_or(0);
        // Every value but the seed is at most MOST_THREADS.
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
