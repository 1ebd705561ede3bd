//! cppcheck analyses a source file that this module generates.

use std::io::{self, Write};

use crate::random::Random;
use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated file; increase it when the file changes.
const VERSION: &str = "cppcheck file 1";

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let functions = request.values.number("functions");
    let stamp = [VERSION, &functions.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("program.cpp"), |file| write(file, functions))
    })?;
    let command = words(&[
        &request.tool(0),
        "--quiet",
        "--enable=style,warning",
        "--template={line}: {id}",
        "--output-file=/dev/stdout",
        "program.cpp",
    ]);
    Ok(request.prepared(input, command))
}

/// Writes `count` functions, each with a second one that calls it. They have branches and loops for
/// cppcheck to follow, and defects for it to find: unused variables, lost memory, divisions by
/// zero.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    let mut random = Random::new(31);
    writeln!(out, "#include <string>\n#include <vector>")?;
    for number in 0..count {
        let (limit, step) = (random.below(90) + 1, random.below(9) + 1);
        write!(
            out,
            "
static int sum{number}(const std::vector<int> &all, int count) {{
    int sum = 0, unused = {step};
    int *copy = new int[count];
    for (int i = 0; i < count; i++) {{
        copy[i] = i * {step};
        if (all.size() > {limit} && all[i] > count)
            sum += copy[i] / (count - {limit});
        else if (count == {limit})
            sum -= all[i];
    }}
    switch (sum % {step}) {{
    case 0:
        sum++;
    case 1:
        sum += {limit};
        break;
    default:
        sum--;
    }}
    while (sum > count && count != 0) {{
        sum -= count;
        if (sum == {limit})
            break;
    }}
    return sum;
}}
int twice{number}(int count, const std::string name) {{
    std::vector<int> all(count, {step});
    return sum{number}(all, count) + sum{number}(all, count + name.size());
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
