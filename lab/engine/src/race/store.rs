//! Proofs that hold in more than one race of a collection.

use std::collections::BTreeMap;

use heapdrome_record::Proof;

/// The proofs that the cells of one collection have taken.
#[derive(Debug, Default)]
pub struct ProofStore {
    proofs: BTreeMap<String, Proof>,
}

impl ProofStore {
    /// The proof that was taken under `key`, which stands for everything that the cells share: the
    /// program, the library and the environment.
    pub fn find(&self, key: &str) -> Option<&Proof> {
        self.proofs.get(key)
    }

    /// Keeps a proof, unless there is one.
    pub fn keep(&mut self, key: String, proof: Proof) {
        self.proofs.entry(key).or_insert(proof);
    }
}

/// The proofs of the collection that a race is part of.
pub(super) struct Shared {
    pub(super) store: ProofStore,
    /// The cell of the collection that this race is.
    pub(super) cell: String,
    /// How many words of the command stand for its program.
    pub(super) program_words: usize,
}
