//! The command line of the runner.

use heapdrome_workloads::{Parameters, find, list};

/// Heap on which a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapName {
    /// The heap of the C library, or of a preloaded allocator.
    Libc,
    /// The heap `Lifo`, whose calls cost almost nothing.
    Cheapest,
}

impl HeapName {
    /// Returns the name that follows `--heap`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Libc => "libc",
            Self::Cheapest => "cheapest",
        }
    }
}

/// Parsed command line.
#[derive(Debug)]
pub(crate) struct Words {
    /// Name of the workload.
    pub(crate) workload: String,
    /// Parameters of the workload, as on the command line.
    pub(crate) rest: Vec<String>,
    pub(crate) heap: HeapName,
    /// Number of pairs of runs for `--cost`.
    pub(crate) pairs: Option<usize>,
}

const USAGE: &str =
    "write: heapdrome-runner WORKLOAD [PARAMETER...] [--heap libc|cheapest | --cost [PAIRS]]";
/// Default number of pairs of runs.
const PAIRS: usize = 9;

impl Words {
    /// Parses a command line.
    ///
    /// # Errors
    /// Returns one line that describes the error.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let (workload, rest) = words.split_first().ok_or_else(|| USAGE.to_owned())?;
        let mut read = Self {
            workload: workload.clone(),
            rest: Vec::new(),
            heap: HeapName::Libc,
            pairs: None,
        };
        let mut rest = rest.iter().peekable();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--heap" => read.heap = heap(rest.next())?,
                "--cost" => {
                    let pairs = rest.next_if(|next| next.parse::<usize>().is_ok());
                    read.pairs = Some(pairs_of(pairs)?);
                }
                option if option.starts_with("--") => {
                    return Err(format!("no such option: '{option}'; {USAGE}"));
                }
                _ => read.rest.push(word.clone()),
            }
        }
        Ok(read)
    }

    /// Returns the parameters of the workload.
    ///
    /// # Errors
    /// Returns one line that describes the error.
    pub(crate) fn parameters(&self) -> Result<Parameters, String> {
        let description = find(&self.workload).ok_or_else(|| {
            let names: Vec<_> = list().iter().map(|one| one.name).collect();
            let (name, known) = (&self.workload, names.join(", "));
            format!("there is no workload '{name}'; there are {known}")
        })?;
        Parameters::parse(description, &self.rest).map_err(|refusal| refusal.to_string())
    }

    /// Returns the workload and its parameters as written on the command line.
    pub(crate) fn title(&self) -> String {
        let words = std::iter::once(&self.workload).chain(&self.rest);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

fn heap(name: Option<&String>) -> Result<HeapName, String> {
    match name.map(String::as_str) {
        Some("libc") => Ok(HeapName::Libc),
        Some("cheapest") => Ok(HeapName::Cheapest),
        Some(other) => Err(format!(
            "no such heap: '{other}'; use libc (the preloaded allocator, or else the C library's) or \
             cheapest"
        )),
        None => Err("--heap requires libc or cheapest".to_owned()),
    }
}

fn pairs_of(word: Option<&String>) -> Result<usize, String> {
    let pairs = word.map_or(Ok(PAIRS), |word| word.parse());
    match pairs {
        Ok(pairs @ 3..=1000) => Ok(pairs),
        _ => Err("--cost requires 3 to 1000 pairs of runs".to_owned()),
    }
}
