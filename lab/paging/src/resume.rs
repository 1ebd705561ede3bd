//! Resumption: merges stored cells with the cells that are requested now.

use heapdrome_schema::PagingCell as Cell;

/// Merges the requested cells into the stored ones, and returns the positions of the requested
/// cells. Replaces a stored cell without a report, because the cause of its failure may be gone.
///
/// # Errors
/// When a cell was stored under another setting, because its rounds cannot be combined with new
/// ones. The error is the cell's experiment and name.
pub fn take_up(kept: &mut Vec<Cell>, wanted: Vec<Cell>) -> Result<Vec<usize>, String> {
    let mut places = Vec::new();
    for cell in wanted {
        let same = |old: &Cell| old.part == cell.part && old.name == cell.name;
        match kept.iter().position(same) {
            Some(place) if places.contains(&place) => {}
            None => {
                places.push(kept.len());
                kept.push(cell);
            }
            Some(place) if kept[place].reports.is_empty() => {
                places.push(place);
                kept[place] = cell;
            }
            Some(place) if kept[place].is_set_as(&cell) => {
                places.push(place);
                // The allocator's file may have moved in the meantime.
                kept[place].allocator = cell.allocator;
            }
            Some(_) => return Err(format!("{}/{}", cell.part, cell.name)),
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{Bytes, Experiment, Job, Limit, PagingReport};

    use super::*;

    fn cell(name: &str, memory: u64) -> Cell {
        let limit = Limit {
            memory: Bytes::from_mib(memory),
            swap: Bytes::from_mib(1),
            processors: None,
        };
        Cell::new(Experiment::Paging, name, Job::Probe, Some(limit))
    }

    fn measured(name: &str, memory: u64) -> Cell {
        let mut cell = cell(name, memory);
        cell.add(1, vec![PagingReport::default()]);
        cell
    }

    #[test]
    fn what_was_measured_stays_and_what_was_not_is_tried_again() {
        let mut unmeasured = cell("b", 1);
        unmeasured.failure = Some("no swap".to_owned());
        let mut kept = vec![measured("other", 1), measured("a", 1), unmeasured];
        let wanted = vec![cell("a", 1), cell("b", 2), cell("c", 1)];
        assert_eq!(take_up(&mut kept, wanted), Ok(vec![1, 2, 3]));
        let rounds: Vec<u32> = kept.iter().map(|cell| cell.last_round).collect();
        assert_eq!(rounds, [1, 1, 0, 0]);
        assert_eq!((&kept[2].failure, &kept[3].name), (&None, &"c".to_owned()));
    }

    #[test]
    fn what_was_measured_under_another_limit_is_refused() {
        let mut kept = vec![measured("a", 1)];
        let found = take_up(&mut kept, vec![cell("a", 2)]);
        assert_eq!(found, Err("paging/a".to_owned()));
    }
}
