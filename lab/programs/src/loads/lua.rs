//! Lua runs heapdrome's script.

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const SCRIPT: &str = include_str!("../../data/loads/lua.lua");

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let input = request.input(&[SCRIPT], on_event, &|folder| {
        write_file(&folder.join("load.lua"), SCRIPT)
    })?;
    let repetitions = request.values.word("repetitions");
    // -E makes Lua ignore the user's environment variables.
    let command = words(&[&request.tool(0), "-E", "load.lua", repetitions]);
    Ok(request.prepared(input, command))
}
