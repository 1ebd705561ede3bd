//! Order of the processors by core and socket.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::tell;

/// Position of a processor: its core and socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    processor: usize,
    /// Number of the socket; 0 if the firmware gives none.
    package: u64,
    /// Number of the core, unique only within its socket.
    core: u64,
}

/// Returns the processors that this process may use, in the order in which to place threads on
/// them: one processor of each physical core of the first socket, then their siblings, then the
/// other sockets in the same way. If the topology is unknown, returns them in numerical order.
pub fn processors_in_order() -> Vec<usize> {
    let allowed = allowed();
    let folder = Path::new("/sys/devices/system/cpu");
    ordered(&allowed, |processor| place(folder, processor))
}

/// Returns the processors that this process may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let is_set = |processor: &usize| set.is_set(*processor);
    (0..CpuSet::MAX_CPU).filter(is_set).collect()
}

fn place(folder: &Path, processor: usize) -> Option<Place> {
    let number = |name: &str| {
        let path = folder.join(format!("cpu{processor}/topology/{name}"));
        // The firmware may leave a socket without a number. The kernel then shows -1.
        let number: i64 = tell::read(path.to_str()?)?.trim().parse().ok()?;
        Some(u64::try_from(number).unwrap_or(0))
    };
    Some(Place {
        processor,
        package: number("physical_package_id")?,
        core: number("core_id")?,
    })
}

fn ordered(allowed: &[usize], place: impl Fn(usize) -> Option<Place>) -> Vec<usize> {
    let Some(places) = allowed
        .iter()
        .map(|one| place(*one))
        .collect::<Option<Vec<_>>>()
    else {
        return allowed.to_vec();
    };
    let mut seen: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let mut ranked = Vec::with_capacity(places.len());
    for place in places {
        let siblings = seen.entry((place.package, place.core)).or_insert(0);
        ranked.push((place.package, *siblings, place.processor));
        *siblings += 1;
    }
    ranked.sort_unstable();
    ranked
        .into_iter()
        .map(|(_, _, processor)| processor)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(processor: usize) -> Option<Place> {
        // Two sockets of two cores with two threads each, in the numbering of most firmware.
        let (package, core) = ((processor as u64 / 2) % 2, processor as u64 % 2);
        Some(Place {
            processor,
            package,
            core,
        })
    }

    #[test]
    fn cores_come_before_siblings_and_the_next_socket_last() {
        let all: Vec<_> = (0..8).collect();
        assert_eq!(ordered(&all, machine), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn what_this_process_may_not_use_is_left_out() {
        assert_eq!(ordered(&[1, 4, 5, 6], machine), [1, 4, 5, 6]);
        assert_eq!(ordered(&[0, 2, 4], machine), [0, 4, 2]);
    }

    #[test]
    fn without_a_topology_the_numbers_decide() {
        let partly = |processor| machine(processor).filter(|place| place.processor != 5);
        assert_eq!(ordered(&[3, 5, 7], partly), [3, 5, 7]);
        assert_eq!(place(Path::new("/nowhere"), 0), None);
    }

    #[test]
    fn this_machine_has_the_processors_that_it_lets_this_process_use() {
        let mut found = processors_in_order();
        found.sort_unstable();
        assert_eq!(found, allowed());
        assert!(!found.is_empty());
    }
}
