//! A suite, as its data file defines it.

use std::collections::{BTreeMap, BTreeSet};

use heapdrome_schema::Scale;
use heapdrome_statistics::FEWEST_ROUNDS;
use serde::Deserialize;

use crate::claim::{Claim, HoldsFor, Test};
use crate::table_plan::TablePlan;
use crate::{PublishedTable, SuiteError};

/// Measurements in a form that can be repeated, such as those of a published document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name on the command line.
    pub name: String,
    /// Former names, which still select the suite.
    #[serde(default)]
    pub formerly: Vec<String>,
    /// Heading of the suite's report.
    pub title: String,
    /// A summary of the measurements, in a few sentences.
    pub summary: String,
    /// The document that the suite repeats, if one was published.
    pub document: Option<Document>,
    /// Registry name of the allocator with which the others are compared.
    pub baseline: String,
    /// Whether the suite runs only if it is named, and not as part of `all`.
    #[serde(default)]
    pub apart: bool,
    /// Allocators of the suite, including those that are unavailable.
    #[serde(rename = "entrant")]
    pub entrants: Vec<Entrant>,
    /// Names that stand for several cells or several entrants wherever the file lists such names.
    /// [`Suite::read`] replaces each by its members.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// Cells, in the order in which their races run.
    #[serde(rename = "cell")]
    pub cells: Vec<Cell>,
    /// The tables that are made from the races.
    #[serde(default, rename = "table")]
    pub tables: Vec<TablePlan>,
    /// Published figures of the document.
    #[serde(default, rename = "published")]
    pub published: Vec<PublishedTable>,
    /// Published claims of the document.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// The targets of heapdrome's own allocators, tested like claims.
    #[serde(default, rename = "target")]
    pub targets: Vec<Claim>,
    /// Differences from the published measurements, and other remarks for the reader.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The document that a suite repeats.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Title and author of the document.
    pub title: String,
    /// Machine on which the document's figures were measured.
    pub machine: String,
}

/// An allocator of a suite.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// Name of the allocator in the suite, usually as in the document.
    pub name: String,
    /// Name of the allocator in the registry; `None` if the entrant is unavailable.
    pub allocator: Option<String>,
    /// Reason why the entrant is unavailable. For an entrant with an allocator, this is shown only
    /// if the registry does not know the allocator.
    pub absent: Option<String>,
    /// Whether `*` in a claim or a table excludes the entrant, because it is not in the document.
    #[serde(default)]
    pub added: bool,
    /// Whether the quick form omits the entrant.
    #[serde(default)]
    pub not_in_quick: bool,
    /// Cells in which the entrant takes part; empty for all cells.
    #[serde(default)]
    pub cells: Vec<String>,
    /// Differences from the allocator that was measured in the document.
    pub note: Option<String>,
}

/// A race, or several races with different values of a parameter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the cell, unique in the suite.
    pub name: String,
    /// A description for progress and tables.
    pub title: String,
    /// Name of the workload that the races run.
    pub workload: String,
    /// Parameters at every scale, as `name=value`.
    #[serde(default)]
    pub words: Vec<String>,
    /// Exponents by parameter. The number of operations is proportional to the product of these
    /// parameters, each raised to its exponent.
    #[serde(default)]
    pub counts: BTreeMap<String, i32>,
    /// Parameter that takes several values, if there is one.
    pub sweep: Option<Sweep>,
    /// Entrants that race in the cell; empty for all that are not restricted to other cells.
    #[serde(default)]
    pub entrants: Vec<String>,
    /// Number of untimed memory runs for each allocator, which measure the memory of the process
    /// tree.
    #[serde(default)]
    pub memory_runs: u32,
    /// Form for the quick scale, which takes a few minutes; `None` omits the cell at this scale.
    pub quick: Option<Form>,
    /// Form for the usual scale; `None` omits the cell at this scale.
    pub usual: Option<Form>,
    /// Form with the document's own parameters; `None` omits the cell at the published scale.
    pub published: Option<Form>,
}

/// A parameter that takes several values.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the parameter.
    pub parameter: String,
    /// Values that are run on every machine.
    pub values: Vec<u64>,
    /// Further values. Each is run only on a machine with at least as many processors as the value.
    #[serde(default)]
    #[serde(rename = "with-as-many-processors")]
    pub with_as_many_processors: Vec<u64>,
}

/// The size of a cell's races at one scale.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Further parameters, as `name=value`.
    #[serde(default)]
    pub words: Vec<String>,
    /// Number of rounds. With `most_rounds`, this is the minimum.
    pub rounds: u32,
    /// Maximum number of rounds. If set, an entrant stops once every target on it is decided, and
    /// the race ends once all entrants have stopped.
    pub most_rounds: Option<u32>,
    /// Values that replace all values of the cell's sweep; `None` keeps the sweep's values.
    pub values: Option<Vec<u64>>,
}

impl Suite {
    /// Parses a suite from the text of its data file.
    ///
    /// # Errors
    /// When the text is not a suite, or its parts contradict each other.
    pub fn read(text: &str) -> Result<Self, SuiteError> {
        let mut suite: Self = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| {
                let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
                format!(" (line {line})")
            });
            let message = error.message().replace('\n', " ");
            SuiteError::Unreadable(format!("{message}{}", place.unwrap_or_default()))
        })?;
        suite.replace_groups();
        suite.checked()
    }

    /// Replaces every group in a list of cells or entrants by its members.
    fn replace_groups(&mut self) {
        let groups = &self.groups;
        let claims = self.claims.iter_mut().chain(&mut self.targets);
        let of_claims = claims.flat_map(|claim| claim.test.lists());
        let of_tables = self.tables.iter_mut().flat_map(TablePlan::lists);
        let of_entrants = self.entrants.iter_mut().map(|one| &mut one.cells);
        let of_cells = self.cells.iter_mut().map(|cell| &mut cell.entrants);
        let lists = of_claims.chain(of_tables).chain(of_entrants);
        for names in lists.chain(of_cells) {
            let members = |name: String| groups.get(&name).cloned().unwrap_or_else(|| vec![name]);
            *names = std::mem::take(names)
                .into_iter()
                .flat_map(members)
                .collect();
        }
    }

    fn checked(self) -> Result<Self, SuiteError> {
        let reason = self
            .twice()
            .or_else(|| self.unfounded_entrant())
            .or_else(|| self.unknown_reference())
            .or_else(|| self.bad_cell())
            .or_else(|| self.bad_claim())
            .or_else(|| self.tables.iter().find_map(TablePlan::fault))
            .or_else(|| self.published.iter().find_map(PublishedTable::fault));
        match reason {
            None => Ok(self),
            Some(reason) => Err(SuiteError::Contradiction {
                suite: self.name,
                reason,
            }),
        }
    }

    /// Describes a name that two cells or two entrants share, or a group named like a cell or an
    /// entrant, if there is one.
    fn twice(&self) -> Option<String> {
        let cells = self.cells.iter().map(|cell| ("cell", &cell.name));
        let entrants = self.entrants.iter().map(|one| ("entrant", &one.name));
        let mut seen = BTreeSet::new();
        let twice = cells.chain(entrants).find(|name| !seen.insert(*name));
        let twice = twice.map(|(what, name)| format!("the {what} {name} occurs twice"));
        let hides = |name: &&String| self.cell(name).is_some() || self.entrant(name).is_some();
        let hides = || self.groups.keys().find(hides);
        twice.or_else(|| {
            hides().map(|name| format!("the group {name} has the name of a cell or an entrant"))
        })
    }

    /// Describes an entrant that has neither an allocator nor a reason for its absence, if there is
    /// one.
    fn unfounded_entrant(&self) -> Option<String> {
        let entrant = self
            .entrants
            .iter()
            .find(|one| one.allocator.is_none() && one.absent.is_none())?;
        Some(format!(
            "the entrant {} needs an allocator, or absent = \"why\"",
            entrant.name
        ))
    }

    /// Describes a reference to a cell or an entrant that does not exist, if there is one.
    fn unknown_reference(&self) -> Option<String> {
        let of_tables = self.tables.iter().flat_map(TablePlan::cells);
        let tests = || self.claims.iter().chain(&self.targets);
        let of_claims = tests().flat_map(|claim| claim.test.cells());
        let of_entrants = self.entrants.iter().flat_map(|one| one.cells.iter());
        let mut cells = of_tables.chain(of_claims).chain(of_entrants);
        if let Some(cell) = cells.find(|name| self.cell(name).is_none()) {
            return Some(format!("there is no cell {cell}"));
        }
        let of_tables = self.tables.iter().flat_map(TablePlan::entrants);
        let of_claims = tests().flat_map(|claim| claim.test.entrants());
        let of_cells = self.cells.iter().flat_map(|cell| cell.entrants.iter());
        let mut names = of_tables.chain(of_claims).chain(of_cells);
        let unknown = names.find(|name| self.entrant(name).is_none())?;
        Some(format!("there is no entrant {unknown}"))
    }

    fn bad_cell(&self) -> Option<String> {
        self.cells.iter().find_map(|cell| {
            let forms = [&cell.quick, &cell.usual, &cell.published];
            let mut forms = forms.into_iter().flatten();
            if forms.clone().next().is_none() {
                return Some(format!("the cell {} has no form", cell.name));
            }
            if forms.clone().any(|form| form.rounds == 0) {
                return Some(format!("the cell {} has a form without rounds", cell.name));
            }
            forms.find_map(|form| self.bad_most(cell, form))
        })
    }

    /// Describes a claim that has `unless` without `holds_for = "uncontradicted"`, or `allowance`
    /// without an upper limit, if there is one. The family of a claim's intervals does not cover
    /// agreement by either of two ratios.
    fn bad_claim(&self) -> Option<String> {
        let mut claims = self.claims.iter().chain(&self.targets);
        claims.find_map(|claim| {
            let Test::Ratio(ratio) = &claim.test else {
                return None;
            };
            let only_contradicted = ratio.scope.holds_for == HoldsFor::Uncontradicted;
            let why = if ratio.unless.is_some() && !only_contradicted {
                "unless, which needs holds_for = \"uncontradicted\""
            } else if ratio.allowance.is_some() && ratio.range.high.is_none() {
                "allowance, which needs range = { high = ... }"
            } else {
                return None;
            };
            Some(format!("\"{}\" has {why}", claim.claim))
        })
    }

    /// Returns the reason why `most_rounds` of a form is invalid; `None` if it is valid or not set.
    fn bad_most(&self, cell: &Cell, form: &Form) -> Option<String> {
        let most = form.most_rounds?;
        let why = if most <= form.rounds {
            "that is not more than its rounds".to_owned()
        } else if (form.rounds as usize) < FEWEST_ROUNDS {
            format!("fewer than {FEWEST_ROUNDS} rounds decide nothing")
        } else if !self.is_decided_in(&cell.name) {
            "no target with family = \"race\" is decided in it".to_owned()
        } else {
            return None;
        };
        Some(format!(
            "the cell {} has most_rounds = {most}: {why}",
            cell.name
        ))
    }

    /// Returns the cell of this name.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// Returns the entrant with this name in the suite.
    pub fn entrant(&self, name: &str) -> Option<&Entrant> {
        self.entrants.iter().find(|one| one.name == name)
    }
}

impl Entrant {
    /// Returns the entrant's name in tables: its name in the suite, followed by its name in the
    /// registry if the two differ.
    pub fn label(&self) -> String {
        match &self.allocator {
            Some(allocator) if *allocator != self.name => format!("{} ({allocator})", self.name),
            _ => self.name.clone(),
        }
    }

    /// Returns whether the entrant takes part in a cell.
    pub fn races_in(&self, cell: &Cell) -> bool {
        let allows = |names: &[String], name: &String| names.is_empty() || names.contains(name);
        allows(&self.cells, &cell.name) && allows(&cell.entrants, &self.name)
    }

    /// Returns whether the entrant takes part at a scale.
    pub fn races_at(&self, scale: Scale) -> bool {
        !(self.not_in_quick && scale == Scale::Quick)
    }
}

impl Cell {
    /// Returns the form of the cell at a scale.
    pub fn form(&self, scale: Scale) -> Option<&Form> {
        match scale {
            Scale::Quick => self.quick.as_ref(),
            Scale::Usual => self.usual.as_ref(),
            Scale::Published => self.published.as_ref(),
        }
    }
}
