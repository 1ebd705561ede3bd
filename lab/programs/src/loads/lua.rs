//! Lua runs a script of heapdrome's own.

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
    // -E: no variable of the person's changes what Lua loads.
    let command = words(&[&request.tool(0), "-E", "load.lua", repetitions]);
    Ok(request.prepared(input, command))
}
