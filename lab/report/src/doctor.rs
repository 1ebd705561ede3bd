//! The output of `heapdrome doctor`.

use heapdrome_schema::{Condition, Level};

use crate::foreign;
use crate::paint::Paint;
use crate::words;

/// Formats the conditions of a machine, the most serious first, then a summary. No line is wider
/// than `width` characters (at least 40), except commands to copy.
pub fn render(conditions: &[Condition], width: usize, colour: bool) -> String {
    let paint = Paint(colour);
    let width = width.max(40);
    let mut text = String::new();
    for level in [Level::Warning, Level::Note, Level::Good] {
        for condition in conditions
            .iter()
            .filter(|condition| condition.level == level)
        {
            text.push_str(&told(condition, width, paint));
        }
    }
    text.push('\n');
    text.push_str(&textwrap::fill(&summary(conditions), width));
    text.push('\n');
    text
}

/// Formats one condition: its value and, unless it is good, its meaning and its remedy.
fn told(condition: &Condition, width: usize, paint: Paint) -> String {
    let plain = match condition.level {
        Level::Warning => "warning",
        Level::Note => "note   ",
        Level::Good => "good   ",
    };
    let name = foreign::line(&condition.name);
    let first = format!("{plain}  {name}: {}", foreign::line(&condition.value));
    let lines = fill(&first, width, "", 11);
    let label = match condition.level {
        Level::Warning => paint.care(plain),
        Level::Note => paint.strong(plain),
        Level::Good => paint.good(plain),
    };
    let mut text = format!("{label}{}\n", lines.strip_prefix(plain).unwrap_or(&lines));
    if condition.level != Level::Good {
        text.push_str(&fill(
            &foreign::line(&condition.meaning),
            width,
            "         ",
            9,
        ));
        text.push('\n');
        if let Some(fix) = &condition.fix {
            text.push_str(&format!("         fix: {}\n", foreign::line(fix)));
        }
    }
    text
}

/// Wraps `text` in lines of at most `width` characters. The first line begins with `first`, the
/// others are indented by `indent` characters.
fn fill(text: &str, width: usize, first: &str, indent: usize) -> String {
    let later = " ".repeat(indent);
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&later);
    textwrap::fill(text, options)
}

/// Returns a sentence with the number of conditions of each level, which also states that nothing
/// was changed.
fn summary(conditions: &[Condition]) -> String {
    let number = |level: Level| {
        conditions
            .iter()
            .filter(|condition| condition.level == level)
            .count() as u64
    };
    let warnings = words::count(number(Level::Warning), "warning");
    let notes = words::count(number(Level::Note), "note");
    format!(
        "{warnings}, {notes}, {} good. Nothing was changed.",
        number(Level::Good)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, level: Level, fix: Option<&str>) -> Condition {
        Condition {
            name: name.to_owned(),
            value: "found \u{1b}[31mthis".to_owned(),
            level,
            meaning: "It means something for the result that takes more than one line.".to_owned(),
            fix: fix.map(str::to_owned),
        }
    }

    const EXPECTED: &str = "\
warning  swap: found this
         It means something for the
         result that takes more than one
         line.
         fix: sudo swapoff -a
note     load: found this
         It means something for the
         result that takes more than one
         line.
good     kernel: found this

1 warning, 1 note, 1 good. Nothing was
changed.
";

    #[test]
    fn the_gravest_comes_first_with_its_mend() {
        let conditions = [
            condition("kernel", Level::Good, None),
            condition("load", Level::Note, None),
            condition("swap", Level::Warning, Some("sudo swapoff -a")),
        ];
        assert_eq!(render(&conditions, 41, false), EXPECTED);
        assert!(render(&conditions, 41, true).contains("\u{1b}[33mwarning\u{1b}[0m"));
    }
}
