//! Python, with its own allocator disabled, runs heapdrome's script.

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const SCRIPT: &str = include_str!("../../data/loads/python.py");

/// Variables that make Python allocate all objects by malloc, fix the hash seed and thus the order
/// of sets, and disable the user's module path.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("PYTHONMALLOC", "malloc"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONPATH", ""),
];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let input = request.input(&[SCRIPT], on_event, &|folder| {
        write_file(&folder.join("load.py"), SCRIPT)
    })?;
    let repetitions = request.values.word("repetitions");
    // -s and -S disable user and site modules, and -B disables writing byte code. -I would make
    // Python ignore PYTHONMALLOC.
    let command = words(&[&request.tool(0), "-s", "-S", "-B", "load.py", repetitions]);
    let mut prepared = request.prepared(input, command);
    let pairs = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    prepared.environment = pairs.into();
    Ok(prepared)
}
