//! What all work needs: folders, a flag that ends it, and someone to tell of it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_catalogue::Catalogue;

use crate::event::{Event, Silent, Sink};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::interrupt;

/// What all work needs.
pub struct Engine {
    /// Where everything is.
    pub folders: Folders,
    /// Raised when the work is to end.
    pub interrupt: Arc<AtomicBool>,
    sink: Rc<dyn Sink>,
}

impl Engine {
    /// An engine that works in the user's folders, ends at a signal and tells `sink` what happens.
    ///
    /// # Errors
    /// When there is no home folder, or a signal cannot be handled.
    pub fn new(sink: impl Sink + 'static) -> Result<Self, Failure> {
        let interrupt = interrupt::flag()?;
        Ok(Self {
            folders: Folders::find()?.interrupted_by(&interrupt),
            interrupt,
            sink: Rc::new(sink),
        })
    }

    /// An engine that works in `folders`, leaves signals alone and tells `sink` what happens. Raising its
    /// `interrupt` ends the work.
    pub fn apart(folders: Folders, sink: impl Sink + 'static) -> Self {
        let interrupt = Arc::default();
        Self {
            folders: folders.interrupted_by(&interrupt),
            interrupt,
            sink: Rc::new(sink),
        }
    }

    /// An engine that shows nothing and leaves signals alone: for what takes no time.
    ///
    /// # Errors
    /// When there is no home folder.
    pub fn silent() -> Result<Self, Failure> {
        Ok(Self::apart(Folders::find()?, Silent))
    }

    /// Tells what happened.
    pub fn tell(&self, event: Event<'_>) {
        self.sink.event(event);
    }

    /// Who is told what happens.
    pub fn sink(&self) -> Rc<dyn Sink> {
        Rc::clone(&self.sink)
    }

    /// Ends with [`Failure::Interrupted`] if the work is to end.
    ///
    /// # Errors
    /// When it is.
    pub fn check(&self) -> Result<(), Failure> {
        interrupt::check(&self.interrupt)
    }

    /// Every allocator known here.
    ///
    /// # Errors
    /// When the user's own list is wrong.
    pub fn catalogue(&self) -> Result<Catalogue, Failure> {
        let Folders { cache, config, .. } = &self.folders;
        Catalogue::load(cache, config).map_err(Failure::usage)
    }
}
