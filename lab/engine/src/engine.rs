//! Context of all work: folders, the interrupt flag, the sink of events and the launcher.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_measure::launcher::{LauncherKind, LauncherProgram, Simulation};
use heapdrome_registry::Registry;
use heapdrome_schema::Machine;

use crate::event::{Event, Silent, Sink};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::interrupt;

/// Context that every operation of the engine takes.
pub struct Engine {
    /// Folders of the cache, the configuration and the journals.
    pub folders: Folders,
    /// Flag that ends the work when raised.
    pub interrupt: Arc<AtomicBool>,
    sink: Rc<dyn Sink>,
    launcher: LauncherKind,
}

impl Engine {
    /// Creates an engine that works in the user's folders, stops at SIGINT, SIGTERM or SIGHUP, and
    /// sends events to `sink`.
    ///
    /// # Errors
    /// When there is no home folder, the cache is unusable, or a signal cannot be handled.
    pub fn new(sink: impl Sink + 'static) -> Result<Self, Failure> {
        let interrupt = interrupt::flag()?;
        Ok(Self {
            folders: Folders::find()?.interrupted_by(&interrupt),
            interrupt,
            sink: Rc::new(sink),
            launcher: own_launcher(),
        })
    }

    /// Creates an engine that works in `folders`, handles no signals and sends events to `sink`.
    /// Raising its `interrupt` ends the work.
    pub fn apart(folders: Folders, sink: impl Sink + 'static) -> Self {
        let interrupt = Arc::default();
        Self {
            folders: folders.interrupted_by(&interrupt),
            interrupt,
            sink: Rc::new(sink),
            launcher: own_launcher(),
        }
    }

    /// Creates an engine for brief work. It uses the user's folders, handles no signals and drops
    /// events.
    ///
    /// # Errors
    /// When there is no home folder, or the cache is unusable.
    pub fn silent() -> Result<Self, Failure> {
        Ok(Self::apart(Folders::find()?, Silent))
    }

    /// Replaces the launcher of races by `simulation`. Proofs still need real processes.
    #[must_use]
    pub fn simulated(mut self, simulation: Simulation) -> Self {
        self.launcher = LauncherKind::Simulated(simulation);
        self
    }

    /// Returns the launcher that starts the commands of races.
    pub fn launcher(&self) -> &LauncherKind {
        &self.launcher
    }

    /// Describes this machine and its current load. The description is empty for a simulated
    /// launcher.
    pub fn machine(&self) -> Machine {
        match self.launcher {
            LauncherKind::Program(_) => heapdrome_machine::describe(),
            LauncherKind::Simulated(_) => Machine::default(),
        }
    }

    /// Sends an event to the sink.
    pub fn tell(&self, event: Event<'_>) {
        self.sink.event(event);
    }

    /// Returns the sink of events.
    pub fn sink(&self) -> Rc<dyn Sink> {
        Rc::clone(&self.sink)
    }

    /// Checks whether the work was interrupted.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] if the work was interrupted.
    pub fn check(&self) -> Result<(), Failure> {
        interrupt::check(&self.interrupt)
    }

    /// Loads the registry of allocators.
    ///
    /// # Errors
    /// When the user's own list is invalid.
    pub fn registry(&self) -> Result<Registry, Failure> {
        let Folders { cache, config, .. } = &self.folders;
        Registry::load(cache, config).map_err(Failure::usage)
    }
}

fn own_launcher() -> LauncherKind {
    LauncherKind::Program(LauncherProgram::of_this_executable())
}
