//! The Rust compiler translates a source file that this module generates.

use std::io::{self, Write};

use heapdrome_packages::quoted;

use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated file; increase it when the file changes.
const VERSION: &str = "rustc file 1";
/// Folder for the object file, created again before each run.
const RUN: &str = "run";

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let types = request.values.number("types");
    let stamp = [VERSION, &types.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("types.rs"), |file| write(file, types))
    })?;
    let run = quoted(&input.directory.join(RUN).to_string_lossy());
    let command = words(&[
        &request.tool(0),
        "--edition=2021",
        "--crate-type=lib",
        "--emit=obj",
        "-Copt-level=1",
        "-Ccodegen-units=1",
        "--out-dir",
        RUN,
        "types.rs",
    ]);
    let mut prepared = request.prepared(input, command);
    prepared.prepare = Some(format!("rm -rf {run} && mkdir {run}"));
    Ok(prepared)
}

/// Writes `count` types with derived traits and methods that use iterators and closures.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    for number in 0..count {
        let bits = 8 << (number % 4);
        let divisor = number + 2;
        write!(
            out,
            "
#[derive(Clone, Debug, PartialEq)]
pub struct Type{number} {{
    pub number: u{bits},
    pub name: String,
    pub items: Vec<(u32, Option<String>)>,
}}
impl Type{number} {{
    pub fn sum(&self) -> u64 {{
        let chosen = self.items.iter().filter(|(n, _)| n % {divisor} != 0);
        let length = |name: &Option<String>| name.as_ref().map_or(0, |name| name.len() as u64);
        chosen.map(|(n, name)| u64::from(*n) + length(name)).sum::<u64>() + self.number as u64
    }}
    pub fn longest(&self) -> Option<&str> {{
        let mut names: Vec<&str> = self.items.iter().filter_map(|(_, n)| n.as_deref()).collect();
        names.sort_by_key(|name| name.len());
        names.pop()
    }}
}}
"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::assert_grows_at_its_end;
    use super::write;

    #[test]
    fn a_longer_file_begins_with_the_shorter_one() {
        assert_grows_at_its_end(write);
    }
}
