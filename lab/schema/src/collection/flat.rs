//! The form of a collection in its file.

use serde::{Deserialize, Serialize};

use super::{Absent, Ccdf, ClaimResult, Collection, Member, Purpose, Scale, Table};
use crate::{Fidelity, Machine, MisuseRun, Nanoseconds, PagingCell, Survival, SweepResult};

/// Form of a collection in its file, with the fields of all purposes.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Flat {
    schema: u32,
    heapdrome: String,
    started: String,
    asked: Vec<String>,
    name: String,
    scale: Option<Scale>,
    machine: Machine,
    races: Vec<Member>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables: Vec<Table>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ccdfs: Vec<Ccdf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paging_cells: Vec<PagingCell>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paging_time: Option<Nanoseconds>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    misuse: Vec<MisuseRun>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    survival: Vec<Survival>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fidelity: Option<Box<Fidelity>>,
    claims: Vec<ClaimResult>,
    absent: Vec<Absent>,
    remarks: Vec<String>,
}

impl Flat {
    /// Determines the purpose from the fields that are set, and moves its data out of them. A file
    /// sets the fields of only one purpose.
    fn purpose(&mut self) -> Purpose {
        if let Some(fidelity) = self.fidelity.take() {
            return Purpose::Check(fidelity);
        }
        let Some(scale) = self.scale else {
            return Purpose::Sweep(self.sweep.take());
        };
        if !self.survival.is_empty() {
            let searches = std::mem::take(&mut self.survival);
            return Purpose::Survival { scale, searches };
        }
        if !self.paging_cells.is_empty() || !self.ccdfs.is_empty() {
            return Purpose::Paging {
                scale,
                cells: std::mem::take(&mut self.paging_cells),
                time: self.paging_time,
                ccdfs: std::mem::take(&mut self.ccdfs),
            };
        }
        let runs = std::mem::take(&mut self.misuse);
        match self.races.is_empty() && !runs.is_empty() {
            true => Purpose::Misuse { scale, runs },
            false => Purpose::Suite {
                scale,
                misuse: runs,
            },
        }
    }
}

impl From<Flat> for Collection {
    fn from(mut flat: Flat) -> Self {
        Self {
            purpose: flat.purpose(),
            schema: flat.schema,
            heapdrome: flat.heapdrome,
            started: flat.started,
            asked: flat.asked,
            name: flat.name,
            machine: flat.machine,
            races: flat.races,
            tables: flat.tables,
            claims: flat.claims,
            absent: flat.absent,
            remarks: flat.remarks,
        }
    }
}

impl From<Collection> for Flat {
    fn from(own: Collection) -> Self {
        let mut flat = Self {
            scale: own.scale(),
            schema: own.schema,
            heapdrome: own.heapdrome,
            started: own.started,
            asked: own.asked,
            name: own.name,
            machine: own.machine,
            races: own.races,
            tables: own.tables,
            claims: own.claims,
            absent: own.absent,
            remarks: own.remarks,
            ..Self::default()
        };
        match own.purpose {
            Purpose::Sweep(found) => flat.sweep = found,
            Purpose::Check(fidelity) => flat.fidelity = Some(fidelity),
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => {
                flat.misuse = runs;
            }
            Purpose::Paging {
                cells, time, ccdfs, ..
            } => (flat.paging_cells, flat.paging_time, flat.ccdfs) = (cells, time, ccdfs),
            Purpose::Survival { searches, .. } => flat.survival = searches,
        }
        flat
    }
}
