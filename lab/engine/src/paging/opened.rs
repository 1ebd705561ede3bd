//! Resources that every experiment of the paging lab needs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use heapdrome_paging::{
    Error, Lab, Ledger, Leftovers, Mechanism, Swap, SwapRequest, free_swap, size,
};
use heapdrome_schema::{Bytes, Limit, Machine};

use super::failure;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::workload::companion;

/// Name of the companion that runs experiments.
const CHILD: &str = "heapdrome-lgalloc-bench";

/// An open session of the paging lab.
pub struct Opened<'a> {
    /// Lab that runs the experiments.
    pub lab: Lab,
    /// Remarks for the reader on the whole session.
    pub remarks: Vec<String>,
    /// Time at which the session was opened.
    pub begun: Instant,
    /// Description of the machine at opening. A later description would attribute the lab's own
    /// load to other programs.
    pub machine: Machine,
    /// Engine that runs the lab.
    pub engine: &'a Engine,
}

/// Requested swap.
#[derive(Clone, Debug)]
pub struct SwapWish {
    /// Kind and size of the swap; `None` for the existing swap.
    pub request: Option<SwapRequest>,
    /// Folder for a swap file.
    pub folder: PathBuf,
}

impl<'a> Opened<'a> {
    /// Opens the lab, and removes leftovers of a killed session.
    ///
    /// # Errors
    /// When the companion is missing, or a folder cannot be written.
    pub fn new(engine: &'a Engine) -> Result<Self, Failure> {
        let (ledger, leftovers) = ledger(engine)?;
        engine.tell(Event::Leftovers(&leftovers));
        Ok(Self {
            lab: Lab {
                child: companion::find(CHILD)?,
                ledger,
                interrupt: Arc::clone(&engine.interrupt),
            },
            remarks: vec![huge_pages()],
            begun: Instant::now(),
            machine: heapdrome_machine::describe(),
            engine,
        })
    }

    /// Creates the requested swap, if any, and checks that at least `needed` of swap is free. Adds
    /// a remark if the swap would be more than half full.
    ///
    /// # Errors
    /// When the swap cannot be created, or less than `needed` is free.
    pub fn swap(&mut self, wish: &SwapWish, needed: Bytes) -> Result<Option<Swap>, Failure> {
        let made = wish.request.map(|request| {
            self.engine.tell(Event::MakingSwap(request.bytes));
            Swap::make(request, &wish.folder, &self.lab.ledger)
        });
        let made = made.transpose().map_err(failure)?;
        let free = free_swap();
        if free < needed {
            // Returning here drops the swap, which removes it.
            return Err(Failure::Machine(format!(
                "{} of swap is free and {} is needed: add --swap file:{} (root), or take a smaller \
                 --total",
                size(free),
                size(needed),
                size((needed * 2).rounded_up_to(Bytes::from_gib(1)))
            )));
        }
        if free < needed * 2 {
            self.remarks.push(format!(
                "swap is more than half full in these experiments ({} free, {} used), which slows it \
                 down; make it larger than {}",
                size(free),
                size(needed),
                size(needed * 2)
            ));
        }
        Ok(made)
    }

    /// Returns the mechanism for limits on this machine, and adds a remark that names it.
    ///
    /// # Errors
    /// When this machine has no such mechanism, or the user interrupts.
    pub fn mechanism(&mut self) -> Result<Mechanism, Failure> {
        let mechanism = self.lab.mechanism().map_err(failure)?;
        self.remarks.push(format!(
            "memory limits by {}, read back by each process",
            mechanism.name()
        ));
        Ok(mechanism)
    }

    /// Returns the mechanism for limits on this machine, or adds a remark if there is none.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn mechanism_if_any(&mut self) -> Result<Option<Mechanism>, Failure> {
        match self.mechanism() {
            Ok(mechanism) => Ok(Some(mechanism)),
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Err(failure) => {
                let told = format!("measured without a limit: {failure}");
                self.remarks.push(told);
                Ok(None)
            }
        }
    }

    /// Returns the limit for cells that need no swap: `memory`, no swap, and a quota of
    /// `processors`. Returns `None` without a mechanism. If the quota does not work, the limit has
    /// no quota, and a remark gives the reason.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn limit_without_swap(
        &mut self,
        mechanism: Option<Mechanism>,
        memory: Bytes,
        processors: f64,
    ) -> Result<Option<Limit>, Failure> {
        let Some(mechanism) = mechanism else {
            return Ok(None);
        };
        let quota = match self.lab.try_quota(mechanism, processors) {
            Ok(()) => Some(processors),
            Err(Error::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => {
                let told = format!("measured without a quota of processor time: {error}");
                self.remarks.push(told);
                None
            }
        };
        Ok(Some(Limit {
            memory,
            swap: Bytes(0),
            processors: quota,
        }))
    }
}

/// Returns the lab's ledger, and the leftovers of a killed lab with the action taken on each.
///
/// # Errors
/// When the ledger's folder cannot be written.
pub fn ledger(engine: &Engine) -> Result<(Arc<Ledger>, Leftovers), Failure> {
    let state = engine.folders.races.with_file_name("paging");
    Ledger::open(&state).map_err(failure)
}

/// Describes the mode of huge pages, and its effect on lgalloc.
fn huge_pages() -> String {
    match heapdrome_system::kernel::huge_pages().as_deref() {
        Some("never") => {
            "transparent huge pages: never; lgalloc's requests have no effect".to_owned()
        }
        set => format!("transparent huge pages: {}", set.unwrap_or("not known")),
    }
}
