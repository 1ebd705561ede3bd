//! Table of the instruction counts of the fast paths in heapdrome's own libraries.

use heapdrome_libraries::GOLDENS;

use super::{NONE, Parts};

/// Makes the table of all instruction counts that have a limit. A count is a dash if heapdrome was
/// built without the library, or not for x86-64.
pub(super) fn table() -> Parts {
    let heads = ["allocator", "function", "instructions", "at most"].map(str::to_owned);
    let rows = GOLDENS.iter().map(|golden| {
        let found = golden.instructions();
        vec![
            golden.allocator.to_owned(),
            golden.function.to_owned(),
            found.map_or(NONE.to_owned(), |count| count.to_string()),
            golden.at_most.to_string(),
        ]
    });
    (heads.to_vec(), rows.collect(), Vec::new())
}
