//! SQLite's shell answers queries on a database that it generated itself.

use std::fs::File;

use crate::request::{Request, words, write_error, write_file};
use crate::{Event, Prepared, ProgramError};

const MAKE: &str = include_str!("../../data/loads/sqlite-make.sql");
const QUERY: &str = include_str!("../../data/loads/sqlite-query.sql");

/// Options that make the shell ignore the user's settings.
const PLAIN: [&str; 3] = ["-batch", "-init", "/dev/null"];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let make = MAKE.replace("ORDERS", request.values.word("orders"));
    let stamp = [make.as_str(), QUERY, request.version(0)];
    let input = request.input(&stamp, on_event, &|folder| {
        write_file(&folder.join("query.sql"), QUERY)?;
        let script = folder.join("make.sql");
        write_file(&script, &make)?;
        let stdin = File::open(&script).map_err(write_error(&script))?;
        request.generate(request.tool(0).as_ref(), &|command| {
            command.args(PLAIN).arg("shop.db").current_dir(folder);
            if let Ok(stdin) = stdin.try_clone() {
                command.stdin(stdin);
            }
        })
    })?;
    let tool = request.tool(0);
    let mut command = words(&[&tool]);
    command.extend(words(&PLAIN));
    command.extend(words(&["-readonly", "shop.db", ".read query.sql"]));
    Ok(request.prepared(input, command))
}
