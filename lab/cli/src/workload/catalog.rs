//! The catalog workload: its parameters, its data in the cache, and its command.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use heapdrome_catalog::{
    MOST_SETS, MOST_SIZE, MOST_THREADS, Settings, check, data_folder_name, data_is_complete,
    expected_peak,
};
use heapdrome_packages::{Lock, Shelf};

use super::companion;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{interrupt, output};

/// The name by which it is raced.
pub const NAME: &str = "catalog";

/// What it does, in one line.
pub const SUMMARY: &str = "data sets loaded on an asynchronous executor, joined, formatted and \
     dropped across threads";

/// A parameter of the workload.
pub struct Parameter {
    /// Its name in `name=value`.
    pub name: &'static str,
    /// What it sets.
    pub meaning: &'static str,
    /// Its value in the quick form.
    pub quick: u64,
    /// The greatest value; the least is 1, or 0 for the seed.
    pub most: u64,
}

/// The parameters, in the order of [`values`].
pub const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "n",
        meaning: "data sets to load, as many at a time as parallel says",
        quick: 2,
        most: MOST_SETS as u64,
    },
    Parameter {
        name: "size",
        meaning: "size of each data set, in percent of the default; bytes grow with its square",
        quick: 20,
        most: MOST_SIZE as u64,
    },
    Parameter {
        name: "parallel",
        meaning: "data sets that are loaded at a time, and live at the same time",
        quick: 2,
        most: MOST_THREADS as u64,
    },
    Parameter {
        name: "threads",
        meaning: "threads of the executor",
        quick: 4,
        most: MOST_THREADS as u64,
    },
    Parameter {
        name: "seed",
        meaning: "where random draws begin: the same seed gives the same data",
        quick: 1,
        most: u64::MAX,
    },
];

/// What is told of it, under its headings.
pub const TEXTS: [(&str, &str); 4] = [
    (
        "What it models",
        "A service that loads a catalogue into memory: compressed files are read and deserialised \
         into ordered maps of categories, entries, chapters and items with strings, options and \
         nested records, by tasks of an asynchronous executor; then joined, and hundreds of \
         thousands of names and URLs formatted for each data set; then all of it is dropped, \
         mostly by other threads than those that allocated it. Gigabytes of small, long-lived \
         blocks: what a long-running server asks of its allocator.",
    ),
    (
        "Who described it",
        "The alloc-perf-test document, which runs it with n=8 and n=4 at the default size. Written \
         from the description; the data are drawn by heapdrome, from a seed.",
    ),
    (
        "What its figures mean",
        "One operation is one record formatted: a name and a URL. Times are those from the first task \
         to the last drop. peak_requested_bytes is counted once, when the data are generated, and \
         holds for every allocator; overhead is the peak of resident memory over it. data_bytes is \
         the size of the data sets, serialised and not compressed. dropped_elsewhere_share is the \
         share of categories that another thread dropped than had joined them.",
    ),
    (
        "What it does not say",
        "How fast an allocator hands out single blocks: reading, decompressing and formatting take a \
         good part of the time. Nor what happens over hours: every run starts with fresh memory.",
    ),
];

/// The figures that it reports besides those of every workload; less is better for all of them.
pub const FIGURES: [&str; 4] = [
    "user_s",
    "system_s",
    "data_bytes",
    "dropped_elsewhere_share",
];

/// The values of the parameters, in their order.
pub fn values(settings: &Settings) -> [u64; 5] {
    let Settings {
        n,
        size,
        parallel,
        threads,
        seed,
    } = *settings;
    [
        u64::from(n),
        u64::from(size),
        u64::from(parallel),
        u64::from(threads),
        seed,
    ]
}

/// The settings as `name=value` words.
pub fn words(settings: &Settings) -> Vec<String> {
    let pairs = PARAMETERS.iter().zip(values(settings));
    pairs
        .map(|(one, value)| format!("{}={value}", one.name))
        .collect()
}

/// Reads `name=value` words, and looks whether the machine has the memory.
///
/// # Errors
/// When a word is wrong, or the memory would not do.
pub fn parse(words: &[String], quick: bool) -> Result<Settings, Failure> {
    let mut values = match quick {
        true => PARAMETERS.map(|one| one.quick),
        false => values(&Settings::default()),
    };
    let mut given = [false; PARAMETERS.len()];
    let known = || PARAMETERS.map(|one| one.name).join(", ");
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "{NAME}: cannot read '{word}'; write name=value with one of {}",
                known()
            ))
        })?;
        let place = PARAMETERS.iter().position(|one| one.name == name);
        let place = place.ok_or_else(|| {
            Failure::Usage(format!(
                "{NAME} has no parameter '{name}'; it has {}",
                known()
            ))
        })?;
        if std::mem::replace(&mut given[place], true) {
            return Err(Failure::Usage(format!("{NAME}: {name} is given twice")));
        }
        values[place] = number(&PARAMETERS[place], value)?;
    }
    settings(values)
}

fn number(parameter: &Parameter, value: &str) -> Result<u64, Failure> {
    let least = u64::from(parameter.name != "seed");
    let number = value.parse().ok();
    number
        .filter(|number| (least..=parameter.most).contains(number))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{NAME}: {} must be a whole number from {least} to {}, not '{value}'",
                parameter.name, parameter.most
            ))
        })
}

/// The settings of these values, if the machine has the memory for them.
fn settings(values: [u64; 5]) -> Result<Settings, Failure> {
    let [n, size, parallel, threads, seed] = values;
    // Every value but the seed is at most MOST_THREADS.
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let settings = Settings {
        n: small(n),
        size: small(size),
        parallel: small(parallel),
        threads: small(threads),
        seed,
    };
    check(&settings).map_err(|error| Failure::Usage(format!("{NAME}: {error}")))?;
    Ok(settings)
}

/// The same with another number of threads.
///
/// # Errors
/// When there are too many.
pub fn with_threads(settings: &Settings, threads: u64) -> Result<Settings, Failure> {
    let of_threads = PARAMETERS.iter().find(|one| one.name == super::THREADS);
    let threads = match of_threads {
        Some(one) => number(one, &threads.to_string())?,
        None => threads,
    };
    Ok(Settings {
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        ..*settings
    })
}

/// The data of a race, which nobody else writes or removes while this lives.
pub struct Data {
    folder: PathBuf,
    program: PathBuf,
    _lock: Arc<Lock>,
}

/// Makes the data ready: generated once, and used again.
///
/// # Errors
/// When they cannot be generated.
pub fn data(settings: &Settings, folders: &Folders) -> Result<Data, Failure> {
    let program = companion::find(companion::CATALOG)?;
    let name = data_folder_name(settings);
    output::tell(format_args!("locking the data of {NAME}"));
    let cache = &folders.cache;
    let locked = cache.keep(&name);
    interrupt::check(cache.interrupt())?;
    let lock = locked.map_err(Failure::machine)?;
    let folder = cache
        .shelf(Shelf::Workloads)
        .map_err(Failure::machine)?
        .join(&name);
    if !data_is_complete(&folder, settings) {
        let staging = lock.staging().map_err(Failure::machine)?;
        let fresh = staging.path().join("data");
        generate(&program, &fresh, settings, folders)?;
        lock.place(&fresh, &folder).map_err(Failure::machine)?;
    }
    Ok(Data {
        folder,
        program,
        _lock: lock,
    })
}

impl Data {
    /// The command that runs the workload, and how many words of it stand for its program.
    pub fn command(&self, settings: &Settings) -> (Vec<String>, usize) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut command = vec![text(&self.program), "test".to_owned(), text(&self.folder)];
        let program_words = command.len();
        let options = [
            ("-n", u64::from(settings.n)),
            ("--parallel", u64::from(settings.parallel)),
            ("--threads", u64::from(settings.threads)),
            ("--seed", settings.seed),
        ];
        for (option, value) in options {
            command.extend([option.to_owned(), value.to_string()]);
        }
        (command, program_words)
    }
}

fn generate(
    program: &Path,
    folder: &Path,
    settings: &Settings,
    folders: &Folders,
) -> Result<(), Failure> {
    let started = Instant::now();
    output::tell(format_args!(
        "generating {} data sets of size {} (a race with them takes about {} of memory); this is \
         done once",
        settings.n,
        settings.size,
        expected_peak(settings)
    ));
    let [n, size, _, _, seed] = values(settings).map(|value| value.to_string());
    let mut command = Command::new(program);
    command.arg("gen-data").arg(folder);
    command.args(["-n", &n, "--size", &size, "--seed", &seed]);
    command.env_remove("LD_PRELOAD").stdin(Stdio::null());
    command.stdout(Stdio::null()).process_group(0);
    let failed = |error| Failure::Machine(format!("cannot run {}: {error}", program.display()));
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if interrupt::check(folders.cache.interrupt()).is_err() {
            end(&mut child);
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        return Err(Failure::Machine(format!(
            "the data of {NAME} cannot be generated ({status}); the line above says why"
        )));
    }
    let seconds = started.elapsed().as_secs_f64();
    output::tell(format_args!("generated in {seconds:.1} s"));
    Ok(())
}

/// How long the generator may take to remove what it has written.
const END_GRACE: Duration = Duration::from_secs(5);

/// Asks the generator to end, and kills it when it does not.
fn end(child: &mut Child) {
    if let Ok(id) = libc::pid_t::try_from(child.id()) {
        // SAFETY: kill takes numbers only. The child has not been waited for, so its id cannot have
        // been given to another process.
        unsafe { libc::kill(id, libc::SIGTERM) };
    }
    let asked = Instant::now();
    while asked.elapsed() < END_GRACE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Settings, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&words, true).map_err(|error| error.to_string())
    }

    #[test]
    fn its_own_figures_are_explained() {
        let told = TEXTS.map(|(_, text)| text).join(" ");
        for figure in FIGURES {
            // user_s and system_s are parts of what every workload reports.
            let is_time = figure.ends_with("_s");
            assert!(is_time || told.contains(figure), "{figure}");
        }
    }

    #[test]
    fn words_are_read_back() {
        let settings = read(&["n=1", "seed=0", "size=10"]).expect("right");
        assert_eq!((settings.n, settings.seed, settings.size), (1, 0, 10));
        let again: Vec<_> = words(&settings);
        let again: Vec<_> = again.iter().map(String::as_str).collect();
        assert_eq!(read(&again), Ok(settings));
        assert_eq!(with_threads(&settings, 3).expect("right").threads, 3);
    }

    #[test]
    fn what_is_wrong_is_told_before_anything_is_written() {
        for word in [
            "n=0",
            "n=257",
            "size=-1",
            "threads=x",
            "speed=1",
            "8",
            "seed=",
        ] {
            let told = read(&[word]).expect_err(word);
            assert!(told.contains("catalog") && !told.contains('\n'), "{told}");
        }
        assert!(read(&["n=1", "n=1"]).is_err());
        let told = read(&["n=256", "parallel=256", "size=1000"]).expect_err("far too much");
        assert!(told.contains("memory"), "{told}");
    }
}
