//! What a reader should know of a workload before believing its figures.

/// A parameter of a workload: a whole number.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in `name=value`.
    pub name: &'static str,
    /// What it sets.
    pub meaning: &'static str,
    /// What it counts, such as `bytes`; empty for a choice.
    pub unit: &'static str,
    /// Its value where nothing is said.
    pub default: u64,
    /// The least value that makes sense.
    pub least: u64,
    /// The greatest.
    pub most: u64,
}

impl Parameter {
    /// A parameter from its name, its unit, its default, its range and its meaning.
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

/// How many threads work at once.
pub(crate) const THREADS: Parameter = Parameter {
    name: "threads",
    meaning: "threads that work at once",
    unit: "threads",
    default: 1,
    least: 1,
    most: 1024,
};

/// Where random draws begin.
pub(crate) const SEED: Parameter = Parameter {
    name: "seed",
    meaning: "where random draws begin: the same seed gives the same operations",
    unit: "",
    default: 1,
    least: 0,
    most: u64::MAX,
};

/// Whether single calls are timed.
pub(crate) const LATENCY: Parameter = Parameter {
    name: "latency",
    meaning: "1: time every single call (slower; the throughput is not comparable then), 0: do not",
    unit: "",
    default: 0,
    least: 0,
    most: 1,
};

/// A set of parameters that goes by a name.
#[derive(Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// The parameters that it sets; the others keep their defaults.
    pub values: &'static [(&'static str, u64)],
    /// The document that published these very parameters, if one did.
    pub published: Option<&'static str>,
}

impl Preset {
    /// A preset that nobody has published.
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

    /// The preset, which this document published.
    #[must_use]
    pub const fn published(mut self, document: &'static str) -> Self {
        self.published = Some(document);
        self
    }
}

/// A figure that a workload reports besides those that every race has.
#[derive(Clone, Copy, Debug)]
pub struct FigureText {
    /// Its name in the report; it ends in its unit.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether more is better; otherwise less is.
    pub more_is_better: bool,
}

impl FigureText {
    /// A figure of which less is better.
    pub const fn less(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            more_is_better: false,
        }
    }
}

/// A workload and what it stands for.
#[derive(Debug)]
pub struct Description {
    /// The name by which it is raced.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it models.
    pub models: &'static str,
    /// Who described it, and where.
    pub origin: &'static str,
    /// What one operation is, and what the figures mean.
    pub meaning: &'static str,
    /// What it does not say.
    pub silence: &'static str,
    /// Its parameters, in the order in which the document gives them.
    pub parameters: &'static [Parameter],
    /// Its presets; the first is the one that runs where nothing is said.
    pub presets: &'static [Preset],
    /// Its figures, whether or not a given run has all of them.
    pub figures: &'static [FigureText],
    /// What else must hold among the parameters, such as a least size below a greatest; the text
    /// says in one line what is wrong.
    pub check: fn(&crate::Parameters) -> Result<(), String>,
    /// About how many bytes a run needs at its peak: blocks as requested, and the workload's own
    /// arrays. A value that does not fit is the greatest one.
    pub needs: fn(&crate::Parameters) -> u64,
}

impl Description {
    /// The place of a parameter.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|one| one.name == name)
    }
}
