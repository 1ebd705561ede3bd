//! Measures the cost of a workload itself: its time on the cheapest heap relative to its time on
//! the C library's heap.
//!
//! Both heaps run alternately in child processes, so that drift of the machine affects both
//! equally.

use std::process::Command;

use heapdrome_schema::WorkloadReport;

use crate::words::{HeapName, Words};

/// Pair of runs: CPU seconds on the cheapest heap and on the C library's heap.
#[derive(Clone, Copy, Debug)]
struct Pair {
    cheapest: f64,
    libc: f64,
}

/// Runs `pairs` pairs and formats a Markdown table of one row: the median CPU time on each heap,
/// and the median and quartiles of the pairs' ratios.
///
/// # Errors
/// Returns an error if a run fails.
pub(crate) fn table(
    title: &str,
    pairs: usize,
    seconds: impl Fn(HeapName) -> Result<f64, String>,
) -> Result<String, String> {
    let both = (0..pairs).map(|turn| pair(turn, &seconds));
    let pairs = both.collect::<Result<Vec<_>, _>>()?;
    let quartiles = |of: fn(&Pair) -> f64| quartiles(pairs.iter().map(of).collect());
    let share = quartiles(|pair| pair.cheapest / pair.libc);
    let head = "| workload | cheapest heap (CPU s) | C library (CPU s) | \
                workload's share (quartiles) | pairs |\n|---|---|---|---|---|";
    Ok(format!(
        "{head}\n| {title} | {:.4} | {:.4} | {:.1}% ({:.1} to {:.1}%) | {} |",
        quartiles(|pair| pair.cheapest)[1],
        quartiles(|pair| pair.libc)[1],
        100.0 * share[1],
        100.0 * share[0],
        100.0 * share[2],
        pairs.len(),
    ))
}

/// Runs both heaps once, in alternating order.
fn pair(turn: usize, seconds: impl Fn(HeapName) -> Result<f64, String>) -> Result<Pair, String> {
    if turn.is_multiple_of(2) {
        let cheapest = seconds(HeapName::Cheapest)?;
        let libc = seconds(HeapName::Libc)?;
        return Ok(Pair { cheapest, libc });
    }
    let libc = seconds(HeapName::Libc)?;
    let cheapest = seconds(HeapName::Cheapest)?;
    Ok(Pair { cheapest, libc })
}

/// Returns the CPU seconds of the measured part of one run, in a child process of this program.
///
/// # Errors
/// Returns the child's error message if the child fails.
pub(crate) fn of_child(words: &Words, heap: HeapName) -> Result<f64, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let output = Command::new(own)
        .arg(&words.workload)
        .args(&words.rest)
        .args(["--heap", heap.name()])
        .output()
        .map_err(|error| format!("cannot start this program: {error}"))?;
    if !output.status.success() {
        let line = String::from_utf8_lossy(&output.stderr);
        return Err(format!("on {}: {}", heap.name(), line.trim()));
    }
    let report: Result<WorkloadReport, _> = serde_json::from_slice(&output.stdout);
    let report = report.map_err(|error| format!("on {}: {error}", heap.name()))?;
    let seconds = report.figures.get("cpu_s").copied();
    seconds.ok_or_else(|| format!("on {}: no cpu_s in the report", heap.name()))
}

/// Returns the first quartile, the median and the third quartile of at least one value.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len() - 1;
    [1, 2, 3].map(|quarter| {
        let place = last as f64 * f64::from(quarter) / 4.0;
        let (below, part) = (place.floor() as usize, place.fract());
        values[below] + part * (values[last.min(below + 1)] - values[below])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn quartiles_lie_between_the_values() {
        assert_eq!(quartiles(vec![5.0, 1.0, 3.0, 2.0, 4.0]), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(vec![2.0, 1.0]), [1.25, 1.5, 1.75]);
    }

    #[test]
    fn heaps_take_turns_and_the_share_is_of_pairs() {
        let order = RefCell::new(Vec::new());
        let seconds = |heap| {
            order.borrow_mut().push(heap);
            let drift = order.borrow().len().div_ceil(2) as f64;
            Ok(match heap {
                HeapName::Cheapest => drift,
                HeapName::Libc => 4.0 * drift,
            })
        };
        let table = table("threadtest small", 3, seconds).unwrap();
        use HeapName::{Cheapest, Libc};
        let turns = [Cheapest, Libc, Libc, Cheapest, Cheapest, Libc];
        assert_eq!(*order.borrow(), turns);
        let row = "| threadtest small | 2.0000 | 8.0000 | 25.0% (25.0 to 25.0%) | 3 |";
        assert_eq!(table.lines().last(), Some(row));
    }

    #[test]
    fn a_run_that_fails_ends_it() {
        let failing = |_| Err("on libc: no memory".to_owned());
        assert_eq!(table("x", 3, failing), Err("on libc: no memory".to_owned()));
    }
}
