//! Types that describe a workload: its texts, parameters, presets and figures. [`Parameters`] holds
//! parameter values, which it parses from a command line and checks.

use crate::Refusal;

/// Parameter of a workload, a whole number.
#[derive(Debug)]
pub struct Parameter {
    /// Name of the parameter in `name=value`.
    pub name: &'static str,
    /// Property that the parameter sets.
    pub meaning: &'static str,
    /// Unit of the value, such as `bytes`; empty if it has none.
    pub unit: &'static str,
    /// Default value.
    pub default: u64,
    /// Minimum accepted value.
    pub least: u64,
    /// Maximum accepted value.
    pub most: u64,
}

impl Parameter {
    /// Creates a parameter from its name, unit, default, range and meaning.
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        default: u64,
        [least, most]: [u64; 2],
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            meaning,
            unit,
            default,
            least,
            most,
        }
    }
}

/// Parameter for the number of threads that work at the same time.
pub(crate) const THREADS: Parameter = Parameter {
    name: "threads",
    meaning: "threads that work at the same time",
    unit: "threads",
    default: 1,
    least: 1,
    most: 1024,
};

/// Parameter for the seed of the random draws.
pub(crate) const SEED: Parameter = Parameter {
    name: "seed",
    meaning: "seed of the random draws: equal seeds give equal operations",
    unit: "",
    default: 1,
    least: 0,
    most: u64::MAX,
};

/// Parameter that enables the timing of single calls.
pub(crate) const LATENCY: Parameter = Parameter {
    name: "latency",
    meaning: "1: time every call (slower: throughput is not comparable with latency=0), 0: do not",
    unit: "",
    default: 0,
    least: 0,
    most: 1,
};

/// Named set of parameters.
#[derive(Debug)]
pub struct Preset {
    /// Name of the preset on the command line.
    pub name: &'static str,
    /// Purpose of the preset.
    pub meaning: &'static str,
    /// Parameters that the preset sets. All other parameters keep their defaults.
    pub values: &'static [(&'static str, u64)],
    /// The document that published exactly these parameters, if one did.
    pub published: Option<&'static str>,
}

impl Preset {
    /// Creates a preset that no document has published.
    pub const fn own(
        name: &'static str,
        meaning: &'static str,
        values: &'static [(&'static str, u64)],
    ) -> Self {
        Self {
            name,
            meaning,
            values,
            published: None,
        }
    }

    /// Marks the preset as published by this document.
    #[must_use]
    pub const fn published(mut self, document: &'static str) -> Self {
        self.published = Some(document);
        self
    }
}

/// Figure that a workload can report.
#[derive(Clone, Copy, Debug)]
pub struct FigureText {
    /// Name of the figure in the report. It ends in the figure's unit, if there is one.
    pub name: &'static str,
    /// Meaning of the figure.
    pub meaning: &'static str,
    /// Whether more is better; otherwise less is.
    pub more_is_better: bool,
}

impl FigureText {
    /// Creates a figure for which less is better.
    pub const fn less(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            more_is_better: false,
        }
    }
}

/// Workload that this crate implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// `threadtest`: rounds of equal blocks, freed by the thread that allocated them.
    Threadtest,
    /// `shbench`: blocks of varying sizes and lifetimes, all within one thread.
    Shbench,
    /// `rptest`: blocks of random sizes in random slots, and others passed from thread to thread.
    Rptest,
    /// `prodcons`: one thread allocates, another frees.
    Prodcons,
    /// `malloctest`: all blocks are allocated, and then freed in the same order.
    Malloctest,
    /// `burst`: memory that stays resident after most or all of a large amount is freed.
    Burst,
    /// `large-blocks`: blocks of megabytes, some replaced while others stay.
    LargeBlocks,
    /// `churn`: small blocks that fit into the processor's cache, replaced at random.
    Churn,
    /// `vectors`: many vectors that grow by `realloc` at the same time.
    Vectors,
    /// `short-threads`: threads that allocate, hand one block over, free the others and end.
    ShortThreads,
    /// `long-lived`: memory of a heap whose blocks are replaced slowly, over many bursts.
    LongLived,
    /// `fork-server`: a parent with a warm heap forks children, which work on a copy of it.
    ForkServer,
    /// `short-process`: the cost of starting and ending a program that allocates little.
    ShortProcess,
}

/// Description of a workload.
#[derive(Debug)]
pub struct Description {
    /// Implementation of the workload in this crate; `None` for a workload with a separate program.
    pub workload: Option<Workload>,
    /// Name of the workload on the command line.
    pub name: &'static str,
    /// One line that describes the workload.
    pub summary: &'static str,
    /// Program that the workload models.
    pub models: &'static str,
    /// Author of the workload, and the document that describes it, if any.
    pub origin: &'static str,
    /// Definition of one operation, and meaning of the figures.
    pub meaning: &'static str,
    /// Questions that the workload does not answer.
    pub silence: &'static str,
    /// Parameters of the workload, in the order in which numbers on the command line set them.
    pub parameters: &'static [Parameter],
    /// Presets of the workload. The first one runs if none is named.
    pub presets: &'static [Preset],
    /// All figures that the workload can report. A run may lack some of them.
    pub figures: &'static [FigureText],
    /// Further conditions on the parameters, such as a minimum size that does not exceed the
    /// maximum. The error text describes the violation in one line.
    pub check: fn(&Parameters) -> Result<(), String>,
    /// Approximate peak memory of a run in bytes: blocks as requested, and the workload's own
    /// arrays. Saturates on overflow.
    pub needs: fn(&Parameters) -> u64,
}

impl Description {
    /// Returns the index of a parameter.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|one| one.name == name)
    }
}

/// Workload with a checked value for each of its parameters.
#[derive(Clone, Debug)]
pub struct Parameters {
    description: &'static Description,
    values: Vec<u64>,
}

impl Parameters {
    /// Parses `[PRESET] [NUMBER...] [name=value...]`. A number sets the parameter at the same
    /// position, counted after the preset. The default preset is the first one.
    ///
    /// # Errors
    /// Returns an error if a word cannot be parsed, a parameter is unknown or given twice, there
    /// are too many numbers, a value is out of range, or values contradict each other.
    pub fn parse(
        description: &'static Description,
        words: &[impl AsRef<str>],
    ) -> Result<Self, Refusal> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let named = words
            .first()
            .and_then(|word| description.presets.iter().find(|one| one.name == *word));
        let mut parameters = Self::of_preset(description, named.map(|preset| preset.name));
        let rest = &words[usize::from(named.is_some())..];
        let mut given = vec![false; parameters.values.len()];
        for (position, word) in rest.iter().enumerate() {
            let (place, value) = parameters.place_and_value(position, word)?;
            if std::mem::replace(&mut given[place], true) {
                let (workload, name) = (description.name, description.parameters[place].name);
                return Err(Refusal::Twice { workload, name });
            }
            parameters.values[place] = parameters.in_range(place, value)?;
        }
        parameters.checked()
    }

    /// Returns the preset of this name, or the first preset if no name is given.
    fn of_preset(description: &'static Description, name: Option<&str>) -> Self {
        let presets = description.presets;
        let preset = presets.iter().find(|one| Some(one.name) == name);
        let set = preset.or(presets.first()).map_or(&[][..], |one| one.values);
        let value = |parameter: &Parameter| {
            let of_preset = set.iter().find(|(name, _)| *name == parameter.name);
            of_preset.map_or(parameter.default, |(_, value)| *value)
        };
        Self {
            description,
            values: description.parameters.iter().map(value).collect(),
        }
    }

    fn place_and_value<'a>(
        &self,
        position: usize,
        word: &'a str,
    ) -> Result<(usize, &'a str), Refusal> {
        let workload = self.description.name;
        let known = || self.description.parameters.iter().map(|one| one.name);
        if let Some((name, value)) = word.split_once('=') {
            let place = self
                .description
                .place(name)
                .ok_or_else(|| Refusal::Unknown {
                    workload,
                    name: name.to_owned(),
                    known: known().collect::<Vec<_>>().join(", "),
                })?;
            return Ok((place, value));
        }
        if !word.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            let presets: Vec<_> = self
                .description
                .presets
                .iter()
                .map(|one| one.name)
                .collect();
            return Err(Refusal::Word {
                workload,
                word: word.to_owned(),
                presets: presets.join(", "),
            });
        }
        match position < self.values.len() {
            true => Ok((position, word)),
            false => Err(Refusal::TooMany {
                workload,
                most: self.values.len(),
                known: known().collect::<Vec<_>>().join(" "),
            }),
        }
    }

    fn in_range(&self, place: usize, value: &str) -> Result<u64, Refusal> {
        let parameter = &self.description.parameters[place];
        let range = parameter.least..=parameter.most;
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| Refusal::Range {
            workload: self.description.name,
            name: parameter.name,
            value: value.to_owned(),
            least: parameter.least,
            most: parameter.most,
        })
    }

    fn checked(self) -> Result<Self, Refusal> {
        match (self.description.check)(&self) {
            Ok(()) => Ok(self),
            Err(reason) => Err(Refusal::Contradiction {
                workload: self.description.name,
                reason,
            }),
        }
    }

    /// Replaces the value of one parameter.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or if the value is out of range or
    /// contradicts other values.
    pub fn with(mut self, name: &str, value: u64) -> Result<Self, Refusal> {
        let word = format!("{name}={value}");
        let (place, value) = self.place_and_value(0, &word)?;
        self.values[place] = self.in_range(place, value)?;
        self.checked()
    }

    /// Returns the description of the workload.
    pub fn description(&self) -> &'static Description {
        self.description
    }

    /// Returns the value of a parameter, or `None` if the workload has no parameter of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.description.place(name).map(|place| self.values[place])
    }

    /// Returns the value of a parameter that the workload is known to have.
    pub(crate) fn value(&self, name: &str) -> u64 {
        self.get(name)
            .expect("a workload asks only for parameters of its own")
    }

    /// Formats every parameter as `name=value`; [`parse`](Self::parse) reads them back.
    pub fn words(&self) -> Vec<String> {
        let pairs = self.description.parameters.iter().zip(&self.values);
        pairs
            .map(|(one, value)| format!("{}={value}", one.name))
            .collect()
    }
}
