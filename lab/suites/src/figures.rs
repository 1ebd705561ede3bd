//! The races of a cell, and the reason why a figure is missing.

use heapdrome_schema::{Member, RaceResult, Status};

/// Returns, in words, the reason why an allocator has no valid row, or lacks a figure.
pub(crate) fn missing(result: &RaceResult, allocator: &str) -> &'static str {
    let row = result
        .entrants
        .iter()
        .find(|row| row.allocator == allocator);
    match row.map(|row| row.status) {
        None => "did not race",
        Some(Status::Failed) => "failed",
        Some(Status::NotServed) => "did not serve malloc",
        Some(Status::Timeout) => "ran out of time",
        Some(Status::Ok) => "has no such figure",
    }
}

/// Returns the members of a collection that belong to a cell of a suite, in ascending order of the
/// swept value.
pub(crate) fn of_cell<'a>(members: &[&'a Member], suite: &str, cell: &str) -> Vec<&'a Member> {
    let full = format!("{suite}/{cell}");
    let mut found: Vec<&Member> = members.iter().copied().filter(|m| m.cell == full).collect();
    found.sort_by_key(|member| member.swept);
    found
}
