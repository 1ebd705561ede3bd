//! The claim that fast paths stay within their stored instruction counts.
//!
//! The instructions are counted in the libraries embedded in heapdrome, so the counts are exact.

use heapdrome_libraries::{GOLDENS, Golden};
use heapdrome_schema::{Holds, Member};
use sha2::{Digest as _, Sha256};

/// Returns the verdict on the fast paths of the allocators named in `of`, with their counts.
pub(super) fn judge(members: &[&Member], of: &[String]) -> (Holds, String) {
    let own = |golden: &&Golden| of.iter().any(|name| name == golden.allocator);
    let count = |golden: &'static Golden| Some((golden, golden.instructions()?));
    let goldens = GOLDENS.iter().filter(own);
    let counted: Option<Vec<(&Golden, usize)>> = goldens.map(count).collect();
    let Some(counted) = counted.filter(|all| !all.is_empty()) else {
        let why = "heapdrome was built without these libraries, or not for x86-64";
        return (Holds::CannotBeTested, why.to_owned());
    };
    let holds = match counted
        .iter()
        .all(|(golden, count)| *count <= golden.at_most)
    {
        true => Holds::Held,
        false => Holds::NotHeld,
    };
    let tell = |(golden, count): &(&Golden, usize)| {
        let Golden {
            allocator,
            function,
            at_most,
        } = golden;
        format!("{function} of {allocator} takes {count} of at most {at_most}")
    };
    let told: Vec<String> = counted.iter().map(tell).collect();
    let raced = counted.iter().all(|(golden, _)| raced(golden, members));
    let which = match raced {
        true => "that raced",
        false => "that this heapdrome carries, which is not the one that raced",
    };
    (
        holds,
        format!("{}; counted in the library {which}", told.join(", ")),
    )
}

/// Returns whether every race in which the allocator took part preloaded the counted library; false
/// if there is no such race.
fn raced(golden: &Golden, members: &[&Member]) -> bool {
    let digest = golden
        .bytes()
        .map(|bytes| format!("{:x}", Sha256::digest(bytes)));
    let rows = members.iter().flat_map(|one| &one.result.entrants);
    let mut own = rows.filter(|row| row.allocator == golden.allocator);
    own.clone().next().is_some() && own.all(|row| row.sha256 == digest)
}
