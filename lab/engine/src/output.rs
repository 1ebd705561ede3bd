//! Lines on standard error.

use std::io::{IsTerminal, Write};

use heapdrome_report::Terminal;

/// The widest table that is made, and the width where there is no terminal.
const WIDTH: usize = 100;

/// Says something on standard error. That nobody reads it must not end a race.
pub fn tell(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "heapdrome: {text}");
}

/// Shows a table on standard error, so that standard output holds the final one alone.
pub fn print_aside(table: &str) {
    let _ = writeln!(std::io::stderr(), "{table}");
}

/// The form for standard output: no wider than the terminal, and coloured only there.
pub fn terminal() -> Terminal {
    let is_terminal = std::io::stdout().is_terminal();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = if is_terminal {
        usize::from(console::Term::stdout().size().1)
    } else {
        WIDTH
    };
    Terminal {
        width: columns.clamp(40, WIDTH),
        colour: is_terminal && !no_colour,
    }
}
