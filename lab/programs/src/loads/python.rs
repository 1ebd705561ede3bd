//! Python, with its own allocator disabled, runs heapdrome's script.

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const SCRIPT: &str = include_str!("../../data/loads/python.py");

/// Environment that allocates all objects by malloc, fixes the order of sets and dictionary keys,
/// and ignores the user's settings.
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
    // Without user and site modules, and without writing byte code; -I would ignore PYTHONMALLOC.
    let command = words(&[&request.tool(0), "-s", "-S", "-B", "load.py", repetitions]);
    let mut prepared = request.prepared(input, command);
    let pairs = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    prepared.environment = pairs.into();
    Ok(prepared)
}
