//! Stray blocks of the quarantine: each block comes out only once, after all accesses of the thread
//! that put it in.

use std::ptr::without_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_elfmalloc::heap::quarantine::Strays;
use heapdrome_models::{Watched, join, model, spawn};

#[derive(Default)]
struct Scene {
    strays: Strays,
    blocks: [Watched; 3],
}

impl Scene {
    /// Frees a block. Returns the number of the block that it replaces, or 0.
    fn free(&self, number: usize) -> usize {
        self.blocks[number - 1].touch();
        let out = self.strays.exchange(0, without_provenance_mut(number));
        let out = out.addr();
        if out != 0 {
            self.blocks[out - 1].touch();
        }
        out
    }
}

#[test]
fn a_stray_block_comes_out_once_and_nobody_else_uses_it_then() {
    model(3, || {
        let scene = Arc::new(Scene::default());
        let out = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let threads = [0, 1].map(|index| {
            let (scene, out) = (scene.clone(), out.clone());
            spawn(move || {
                let number = scene.free(index + 1);
                out[index].store(number, Relaxed);
            })
        });
        let mine = scene.free(3);
        threads.into_iter().for_each(join);
        let [first, second] = [0, 1].map(|index| out[index].load(Relaxed));
        let mut all = [first, second, mine, scene.free(1)];
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}
