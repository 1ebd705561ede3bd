//! An engine in folders of its own, with its events recorded.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use heapdrome_engine::Engine;
use heapdrome_engine::event::{Event, Sink};
use heapdrome_engine::folders::Folders;
use heapdrome_engine::race::usual_options;
use heapdrome_measure::launcher::SimulatedEnd;
use heapdrome_record::{Bytes, Ending, Options};

/// Events as text, one each.
#[derive(Clone, Default)]
pub struct Told(Rc<RefCell<Vec<String>>>);

impl Told {
    /// Whether an event holds all these words.
    pub fn holds(&self, words: &[&str]) -> bool {
        let events = self.0.borrow();
        events
            .iter()
            .any(|event| words.iter().all(|word| event.contains(word)))
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.0.borrow().join("\n")
    }
}

impl Sink for Told {
    fn event(&self, event: Event<'_>) {
        self.0.borrow_mut().push(format!("{event:?}"));
    }
}

/// An engine that works below `root`, as another process would.
pub fn engine(root: &Path, told: &Told) -> Engine {
    let folders = Folders::below(root).unwrap_or_else(|error| panic!("{error}"));
    Engine::apart(folders, told.clone())
}

/// Options without proofs and memory runs, which need processes.
pub fn options() -> Options {
    Options {
        unproven: true,
        memory_runs: 0,
        ..usual_options()
    }
}

/// A command that takes a tenth of a second and prints `stdout`.
pub fn end(stdout: String) -> SimulatedEnd {
    SimulatedEnd {
        wall: Duration::from_millis(100),
        user: Duration::from_millis(90),
        peak: Bytes(1 << 20),
        ending: Ending::Exited(0),
        stdout,
    }
}
