//! A table as the data file of a suite asks for it.

use serde::Deserialize;

use crate::claim::EVERYONE;
use crate::published::misfit;

/// A table to make.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// Title of the table.
    pub title: String,
    /// Contents of the table.
    pub makes: Makes,
    /// Notes under the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Contents of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Makes {
    /// Mean, deviation, user and system time, least and greatest of each allocator in a cell.
    Runs {
        /// The cell.
        cell: String,
    },
    /// Allocators against the values that a cell sweeps.
    Sweep {
        /// The cell.
        cell: String,
        /// The figure.
        figure: String,
        /// How it is shown.
        shown: Shown,
    },
    /// Cells against allocators.
    Cells {
        /// The cells.
        cells: Vec<String>,
        /// The figure.
        figure: String,
        /// How it is shown.
        shown: Shown,
    },
    /// `time(large) / time(small) / (size(large) / size(small))`.
    Degradation {
        /// The cell with more data.
        large: String,
        /// The cell with less.
        small: String,
        /// The figure that tells the size of the data.
        size: String,
    },
    /// The largest of the first runs, one column for each cell.
    Largest {
        /// The cells.
        cells: Vec<String>,
        /// The figure.
        figure: String,
        /// How many runs.
        of: usize,
        /// The unit.
        unit: Unit,
    },
    /// Mean and variance of a figure.
    Variance {
        /// The cell.
        cell: String,
        /// The figure.
        figure: String,
        /// The unit.
        unit: Unit,
    },
    /// How much less of each figure than under the baseline, in percent.
    Savings {
        /// The cell.
        cell: String,
        /// The figures.
        figures: Vec<String>,
    },
    /// Allocators against several figures of one race.
    Figures {
        /// The cell.
        cell: String,
        /// The figures.
        figures: Vec<String>,
        /// How they are shown.
        shown: Shown,
    },
    /// The ratio of one allocator to each of its rivals, rivals against races.
    Against(Against),
    /// How one allocator stands in each race: whom it does worst against, and how many rivals it
    /// keeps below the limit.
    Standing(Against),
    /// The geometric mean over all races of the ratio of one allocator to each of its rivals, and
    /// to whichever of them has the least in each race.
    Means(Against),
    /// How many instructions the fast paths of heapdrome's own libraries take, and may take.
    FastPath,
    /// How many kinds of misuse came to what, under each allocator that was misused.
    Misuse,
    /// Rows that the suite lists itself; nothing in them is measured.
    Listed {
        /// The heads of its columns.
        heads: Vec<String>,
        /// Its rows, each with as many cells.
        rows: Vec<Vec<String>>,
    },
}

/// One allocator against its rivals.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// The allocator.
    pub of: String,
    /// Its rivals; where none are named, everyone that claims mean by `*`.
    #[serde(default = "everyone")]
    pub to: Vec<String>,
    /// The cells.
    pub cells: Vec<String>,
    /// The figure.
    pub figure: String,
    /// The ratio below which an interval must lie wholly, where there is such a target.
    pub below: Option<f64>,
    /// Whether a table of means also has that to whichever rival has the least in each race, which
    /// the target is about then.
    #[serde(default)]
    pub least: bool,
}

fn everyone() -> Vec<String> {
    vec![EVERYONE.to_owned()]
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The mean, in millions.
    Millions,
    /// The mean, in MiB.
    Mib,
    /// The mean as it is.
    Plain,
    /// The mean of what is above one, in percent.
    PercentAboveOne,
    /// The ratio to the baseline with its interval.
    Ratio,
    /// The baseline's figure over it, with its interval: a multiple where less is better.
    Inverse,
}

/// A unit of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// 1024 bytes, of a figure in bytes.
    KiB,
    /// 1024 KiB.
    MiB,
    /// 1024 MiB.
    GiB,
}

impl Unit {
    /// How many of the figure's own units it is.
    pub(crate) fn size(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::KiB => 1024.0,
            Self::MiB => 1024.0 * 1024.0,
            Self::GiB => 1024.0 * 1024.0 * 1024.0,
        }
    }

    /// Its sign.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::KiB => "KiB",
            Self::MiB => "MiB",
            Self::GiB => "GiB",
        }
    }
}

impl TablePlan {
    /// The cells that it speaks of.
    pub(crate) fn cells(&self) -> Vec<&String> {
        match &self.makes {
            Makes::Runs { cell }
            | Makes::Sweep { cell, .. }
            | Makes::Variance { cell, .. }
            | Makes::Savings { cell, .. }
            | Makes::Figures { cell, .. } => vec![cell],
            Makes::Against(plan) | Makes::Standing(plan) | Makes::Means(plan) => {
                plan.cells.iter().collect()
            }
            Makes::Cells { cells, .. } | Makes::Largest { cells, .. } => cells.iter().collect(),
            Makes::Degradation { large, small, .. } => vec![large, small],
            Makes::FastPath | Makes::Misuse | Makes::Listed { .. } => Vec::new(),
        }
    }

    /// The first fault of the plan, if it has one.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.makes {
            Makes::Listed { heads, rows } => misfit(&self.title, heads, rows),
            _ => None,
        }
    }

    /// The entrants that it names.
    pub(crate) fn entrants(&self) -> Vec<&String> {
        match &self.makes {
            Makes::Against(plan) | Makes::Standing(plan) | Makes::Means(plan) => {
                let named = plan.to.iter().filter(|name| *name != EVERYONE);
                std::iter::once(&plan.of).chain(named).collect()
            }
            _ => Vec::new(),
        }
    }
}
