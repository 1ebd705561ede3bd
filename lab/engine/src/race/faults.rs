//! Selection of an allocator's faults that concern a command.

use heapdrome_schema::{Entrant, Proof};

/// Returns the faults that concern the command of `proof`. Omits the faults of `operator new` if
/// the proof shows that the command never calls it. Without a proof, returns all faults.
pub fn concerning(entrant: &Entrant, proof: Option<&Proof>) -> Vec<String> {
    let calls_new = proof.and_then(|proof| proof.operator_new) != Some(false);
    let of_new = entrant.faults_of_new.iter().filter(|_| calls_new);
    entrant.known_faults.iter().chain(of_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use heapdrome_schema::{Coverage, Nanoseconds, Role};

    use super::*;

    fn told(operator_new: Option<bool>) -> Vec<String> {
        let entrant = Entrant {
            name: String::new(),
            role: Role::Rival,
            version: String::new(),
            library: None,
            sha256: None,
            preload: Vec::new(),
            settings: BTreeMap::new(),
            hardened: false,
            known_faults: vec!["hangs".to_owned()],
            faults_of_new: vec!["new aborts".to_owned()],
            as_is: false,
        };
        let proof = Proof {
            coverage: Coverage::Whole,
            served_by: None,
            calls: 1,
            requested_bytes: 1,
            processes: 1,
            served_processes: 1,
            operator_new,
            cpu: Nanoseconds(1),
            unserved: Vec::new(),
            warnings: Vec::new(),
            key: String::new(),
            taken_in: None,
        };
        concerning(&entrant, Some(&proof))
    }

    #[test]
    fn faults_of_operator_new_concern_only_those_that_may_call_it() {
        assert_eq!(told(Some(false)), ["hangs"]);
        assert_eq!(told(Some(true)), ["hangs", "new aborts"]);
        assert_eq!(told(None), ["hangs", "new aborts"]);
    }
}
