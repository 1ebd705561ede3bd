//! Fork gate: the forking thread has exclusive access, another thread waits for it only to fork
//! itself, and deferred calls run once. Also the fallback, while two threads use it.

use std::ptr::NonNull;
use std::sync::Arc;

use heapdrome_models::fallback::{Fallback, Freed};
use heapdrome_models::fork_gate::{ForkGate, Presence};
use heapdrome_models::scene::Sent;
use heapdrome_models::{Watched, join, model, spawn};
use heapdrome_pages::Simulated;

/// Allocator with one structure, and threads that use it.
struct Scene {
    gate: ForkGate,
    pages: Simulated,
    /// Presences of the forking thread, of another thread, and the shared one, which is visited
    /// first.
    presences: [Presence; 3],
    structure: Watched,
}

type Shared = Arc<Scene>;

/// Index of a caller's presence in `Scene::presences`.
type Caller = usize;
const FORKS: Caller = 0;
const OTHER: Caller = 1;
const SHARED: Caller = 2;

fn scene() -> Shared {
    Arc::new(Scene {
        gate: ForkGate::new(),
        pages: Simulated::new(64 << 20),
        presences: [Presence::of_one(), Presence::of_one(), Presence::of_many()],
        structure: Watched::default(),
    })
}

impl Scene {
    fn close(&self, own: Caller) {
        let each = |visit: &mut dyn FnMut(&Presence)| self.presences.iter().rev().for_each(visit);
        self.gate.close(&self.presences[own], each);
    }

    /// Changes the structure on a slow path. Returns false if the gate is closed.
    fn change(&self, caller: Caller) -> bool {
        let inside = self.gate.enter(&self.presences[caller]);
        if inside.is_some() {
            self.structure.touch();
        }
        inside.is_some()
    }

    /// Simulates a fork: closes the gate, accesses the structure as if copying it for a child, runs
    /// `body`, and opens the gate.
    fn fork(&self, body: impl FnOnce()) {
        self.close(FORKS);
        self.structure.touch();
        body();
        // SAFETY: this thread closed the gate.
        unsafe { self.gate.open(&self.presences[FORKS], &self.pages) };
    }

    /// Changes the structure on a slow path, or defers the change while a thread forks.
    fn change_or_defer(&self, caller: Caller) {
        unsafe fn change(scene: NonNull<u8>) {
            // SAFETY: the scene outlives its threads, and the caller is inside the gate.
            unsafe { scene.cast::<Scene>().as_ref() }.structure.touch();
        }
        if !self.change(caller) {
            let own = &self.presences[caller];
            // SAFETY: any thread inside the gate may call the function once.
            unsafe {
                self.gate
                    .defer(own, &self.pages, change, NonNull::from(self).cast());
            }
        }
    }
}

fn forks_beside(caller: Caller) {
    model(3, move || {
        let scene = scene();
        let other = scene.clone();
        let handle =
            spawn(move || usize::from(other.change(caller)) + usize::from(other.change(caller)));
        scene.fork(|| ());
        let changes = join(handle);
        assert_eq!(scene.structure.touch(), changes + 1);
    });
}

#[test]
fn no_thread_is_inside_while_another_forks() {
    forks_beside(OTHER);
}

#[test]
fn nor_is_a_thread_without_a_presence() {
    forks_beside(SHARED);
}

#[test]
fn the_forking_thread_may_use_the_allocator_itself() {
    model(3, || {
        let scene = scene();
        let other = scene.clone();
        let handle = spawn(move || other.change(OTHER));
        scene.fork(|| assert!(scene.change(FORKS) && scene.change(SHARED)));
        join(handle);
        assert!(scene.change(FORKS));
    });
}

#[test]
fn two_threads_fork_one_after_the_other() {
    model(2, || {
        let scene = scene();
        let other = scene.clone();
        let handle = spawn(move || {
            other.close(OTHER);
            other.structure.touch();
            // SAFETY: this thread closed the gate.
            unsafe { other.gate.open(&other.presences[OTHER], &other.pages) };
        });
        scene.fork(|| ());
        join(handle);
        assert_eq!(scene.structure.touch(), 2);
    });
}

fn defers_beside(caller: Caller) {
    model(3, move || {
        let scene = scene();
        let other = scene.clone();
        let handle = spawn(move || other.change_or_defer(caller));
        scene.fork(|| ());
        join(handle);
        assert_eq!(scene.structure.touch(), 2, "it is done once");
    });
}

#[test]
fn what_is_deferred_is_done_once() {
    defers_beside(OTHER);
}

#[test]
fn so_is_what_a_thread_without_a_presence_defers() {
    defers_beside(SHARED);
}

/// Allocates a block, writes to it, and frees it.
fn use_a_block(fallback: &Fallback, pages: &Simulated) {
    let block = fallback.allocate(pages, 40, 16).expect("there is memory");
    let place = block.cast::<usize>();
    // SAFETY: the block belongs to this thread and has 40 bytes.
    unsafe {
        place.write(block.addr().get());
        assert_eq!(place.read(), block.addr().get());
    }
    assert_eq!(fallback.free(pages, block.addr().get(), false), Freed::Done);
}

#[test]
fn two_threads_take_blocks_and_free_them() {
    model(3, || {
        let fallback = Arc::new((Fallback::new(), Simulated::new(64 << 20)));
        let other = fallback.clone();
        let handle = spawn(move || use_a_block(&other.0, &other.1));
        use_a_block(&fallback.0, &fallback.1);
        join(handle);
        use_a_block(&fallback.0, &fallback.1);
    });
}

#[test]
fn a_chunk_is_purged_only_while_it_holds_no_block() {
    model(3, || {
        let shared = Arc::new((Fallback::new(), Simulated::new(64 << 20)));
        let large = shared.0.allocate(&shared.1, 100 << 10, 16);
        let large = Sent(large.expect("there is memory"));
        let other = shared.clone();
        let handle = spawn(move || other.0.free(&other.1, large.get().addr().get(), false));
        let block = shared.0.allocate(&shared.1, 100 << 10, 16);
        let block = block.expect("there is memory");
        // The first page holds the chunk's header, and is never purged. SAFETY: the block belongs
        // to this thread and is large enough.
        let block = unsafe { block.add(90 << 10) }.cast::<u64>();
        // SAFETY: the place lies in this thread's block.
        unsafe { block.write(7) };
        assert_eq!(join(handle), Freed::Done);
        // SAFETY: the place lies in this thread's block.
        assert_eq!(unsafe { block.read() }, 7, "its memory was taken");
    });
}
