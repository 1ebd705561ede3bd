//! Plans for tests.

use heapdrome_schema::{Entrant, Nanoseconds, Options, Plan, Role, Stopping};

/// Creates a plan that runs `command` under `entrants` entrants, each with the system's allocator.
pub(crate) fn plan_of(command: &[&str], entrants: usize) -> Plan {
    let entrant = |place: usize| Entrant {
        name: format!("entrant-{place}"),
        role: if place == 0 {
            Role::Baseline
        } else {
            Role::Rival
        },
        version: "1".to_owned(),
        ..Entrant::default()
    };
    Plan {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        started_in: "/".into(),
        entrants: (0..entrants).map(entrant).collect(),
        seed: 1,
        options: Options {
            timeout: Some(Nanoseconds(20_000_000_000)),
            ..Options::default()
        },
        stopping: Stopping {
            min_rounds: 1,
            max_rounds: 3,
            ..Stopping::default()
        },
        alpha: 0.05,
        ..Plan::default()
    }
}
