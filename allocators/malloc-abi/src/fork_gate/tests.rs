use heapdrome_pages::Simulated;

use super::*;

struct Scene {
    gate: ForkGate,
    own: Presence,
    pages: Simulated,
}

impl Scene {
    fn new() -> Self {
        Self {
            gate: ForkGate::new(),
            own: Presence::of_one(),
            pages: Simulated::new(64 << 20),
        }
    }

    fn close(&self) {
        self.gate.close(&self.own, |visit| visit(&self.own));
    }

    fn open(&self) {
        // SAFETY: this thread closed the gate.
        unsafe { self.gate.open(&self.own, &self.pages) };
    }

    /// Returns whether another thread may begin a slow path.
    fn is_open(&self) -> bool {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.gate.enter(&Presence::of_one()).is_some());
            other.join().expect("it ends well")
        })
    }
}

#[test]
fn a_handler_of_a_fork_may_fork() {
    let scene = Scene::new();
    scene.close();
    scene.close();
    scene.open();
    assert!(!scene.is_open(), "the first fork is in progress");
    scene.open();
    assert!(scene.is_open());
    // In the child of the second fork, the first fork is still in progress.
    scene.close();
    scene.close();
    let each = |visit: &mut dyn FnMut(&Presence)| visit(&scene.own);
    // SAFETY: this thread closed the gate, and plays the part of its copy in the child.
    unsafe { scene.gate.open_in_child(&scene.own, &scene.pages, each) };
    assert!(scene.is_open());
    scene.open();
    assert!(scene.is_open());
    scene.close();
    assert!(!scene.is_open());
    scene.open();
}

#[test]
fn a_slow_path_goes_on_that_a_signal_interrupted_to_fork() {
    let scene = Scene::new();
    let inside = scene.gate.enter(&scene.own);
    scene.close();
    let each = |visit: &mut dyn FnMut(&Presence)| visit(&scene.own);
    // SAFETY: this thread closed the gate, and plays the part of its copy in the child.
    unsafe { scene.gate.open_in_child(&scene.own, &scene.pages, each) };
    drop(inside);
    assert_eq!(scene.own.count.load(Relaxed), 0);
}
