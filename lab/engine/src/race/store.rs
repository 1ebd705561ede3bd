//! Proofs that are valid in several races of a collection.

use std::collections::BTreeMap;

use heapdrome_schema::Proof;

/// Proofs from the cells of one collection.
#[derive(Debug, Default)]
pub struct ProofStore {
    proofs: BTreeMap<String, Proof>,
}

impl ProofStore {
    /// Returns the proof that is stored under `key`, if there is one. `key` identifies the program,
    /// the library and the environment.
    pub fn find(&self, key: &str) -> Option<&Proof> {
        self.proofs.get(key)
    }

    /// Stores a proof, unless one exists under `key`.
    pub fn keep(&mut self, key: String, proof: Proof) {
        self.proofs.entry(key).or_insert(proof);
    }
}

/// Proofs of the collection to which a race belongs.
pub(super) struct Shared {
    pub(super) store: ProofStore,
    /// Cell of the collection that this race fills.
    pub(super) cell: String,
    /// Number of words of the command that identify its program.
    pub(super) program_words: usize,
}
