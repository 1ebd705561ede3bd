//! A table, as a suite's data file defines it.

use serde::Deserialize;

use crate::claim::EVERYONE;
use crate::published::misfit;

/// Plan of a table, from a suite's data file.
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
    /// Mean, deviation, minimum and maximum of the wall time, and mean user and system time, of
    /// each allocator in a cell.
    Runs {
        /// Name of the cell whose race is summarised.
        cell: String,
    },
    /// One row for each allocator, and one column for each value that a cell sweeps.
    Sweep {
        /// Name of the cell that has a sweep.
        cell: String,
        /// Name of the figure in the table.
        figure: String,
        /// Form in which the figure is shown.
        shown: Shown,
    },
    /// One row for each race of several cells, and one column for each allocator.
    Cells {
        /// Names of the cells, in the order of the rows.
        cells: Vec<String>,
        /// Name of the figure in the table.
        figure: String,
        /// Form in which the figure is shown.
        shown: Shown,
    },
    /// Degradation: `time(large) / time(small) / (size(large) / size(small))`.
    Degradation {
        /// The cell with more data.
        large: String,
        /// The cell with less data.
        small: String,
        /// The figure that measures the size of the data.
        size: String,
    },
    /// Maximum of a figure over the first runs, with one column for each cell.
    Largest {
        /// Names of the cells, in the order of the columns.
        cells: Vec<String>,
        /// Name of the figure in the table.
        figure: String,
        /// Number of first runs that count.
        of: usize,
        /// Unit in which the maximum is shown.
        unit: Unit,
    },
    /// Mean and variance of a figure.
    Variance {
        /// Name of the cell whose race is summarised.
        cell: String,
        /// Name of the figure in the table.
        figure: String,
        /// Unit in which the mean is shown. The unit of the variance is its square.
        unit: Unit,
    },
    /// Saving of each rival over the baseline on each figure, in percent.
    Savings {
        /// Name of the cell whose race is summarised.
        cell: String,
        /// Names of the figures, in the order of the columns.
        figures: Vec<String>,
    },
    /// One row for each allocator, and one column for each of several figures of one race.
    Figures {
        /// Name of the cell whose race is summarised.
        cell: String,
        /// Names of the figures, in the order of the columns.
        figures: Vec<String>,
        /// Form in which the figures are shown.
        shown: Shown,
    },
    /// Ratio of one allocator's figure to that of each rival, with one row for each rival and one
    /// column for each race.
    Against(Against),
    /// Standing of one allocator, with one row for each race: the rival against which the allocator
    /// does worst, and the numbers of rivals for which the target is reached and missed.
    Standing(Against),
    /// Geometric mean, over all races, of the ratio of one allocator's figure to that of each
    /// rival. With `least`, a further mean compares the allocator with the rival that has the
    /// smallest figure in each race.
    Means(Against),
    /// Number of instructions in the fast paths of heapdrome's own libraries, with their limits.
    FastPath,
    /// Number of kinds of misuse by outcome, for each allocator that was tried.
    Misuse,
    /// Rows that the suite lists itself, without measurements.
    Listed {
        /// Column heads.
        heads: Vec<String>,
        /// Rows, each with one cell for every head.
        rows: Vec<Vec<String>>,
    },
}

/// One allocator against its rivals.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// Name of the allocator that is compared with its rivals.
    pub of: String,
    /// Rivals of the allocator; by default `*`, which stands for the same entrants as in a claim.
    #[serde(default = "everyone")]
    pub to: Vec<String>,
    /// Names of the cells whose races are compared.
    pub cells: Vec<String>,
    /// Name of the compared figure.
    pub figure: String,
    /// Target ratio, below which the whole interval must lie; `None` without a target.
    pub below: Option<f64>,
    /// Whether a table of means also compares the allocator with the rival that has the smallest
    /// figure in each race. The target then applies to this comparison.
    #[serde(default)]
    pub least: bool,
}

fn everyone() -> Vec<String> {
    vec![EVERYONE.to_owned()]
}

/// The form in which a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The mean, in millions.
    Millions,
    /// The mean, in MiB.
    Mib,
    /// The mean, unchanged.
    Plain,
    /// The mean of the excess over 1, in percent.
    PercentAboveOne,
    /// The ratio to the baseline with its interval.
    Ratio,
    /// The ratio of the baseline's figure to the allocator's, with its interval. If less is better,
    /// a value above 1 is an improvement.
    Inverse,
}

/// Unit in which a table shows a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// 1024 bytes, for a figure in bytes.
    KiB,
    /// 1024 KiB.
    MiB,
    /// 1024 MiB.
    GiB,
}

impl Unit {
    /// Returns the size of the unit in the figure's own units.
    pub(crate) fn size(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::KiB => 1024.0,
            Self::MiB => 1024.0 * 1024.0,
            Self::GiB => 1024.0 * 1024.0 * 1024.0,
        }
    }

    /// Returns the symbol of the unit.
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
    /// Returns the cells that the plan refers to.
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

    /// Returns the lists of cells and of entrants of the plan, which may contain groups.
    pub(crate) fn lists(&mut self) -> Vec<&mut Vec<String>> {
        match &mut self.makes {
            Makes::Against(plan) | Makes::Standing(plan) | Makes::Means(plan) => {
                vec![&mut plan.cells, &mut plan.to]
            }
            Makes::Cells { cells, .. } | Makes::Largest { cells, .. } => vec![cells],
            _ => Vec::new(),
        }
    }

    /// Returns the first fault of the plan; `None` if it has none.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.makes {
            Makes::Listed { heads, rows } => misfit(&self.title, heads, rows),
            _ => None,
        }
    }

    /// Returns the entrants that the plan names. `*` is not among them.
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
