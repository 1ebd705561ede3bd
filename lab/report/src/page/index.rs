//! The index of a folder of pages.

use heapdrome_schema::{Machine, Saved};
use maud::{Markup, html};

use super::{collection, document, heading};
use crate::conclusion::Conclusion;
use crate::foreign;
use crate::prose;
use crate::words;

/// The index entry of one page.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the page's file, relative to the folder of the index.
    page: String,
    title: String,
    conclusion: String,
    machine: String,
    started: String,
}

impl Entry {
    /// Describes a result whose page is the file `page` in the folder of the index.
    pub fn new(page: String, saved: &Saved) -> Self {
        let (conclusion, machine, started): (String, &Machine, &str) = match saved {
            Saved::Race(result) => {
                let Conclusion { what, why, .. } = Conclusion::of(result);
                (format!("{what} {why}"), &result.machine, &result.started)
            }
            Saved::Collection(races) => {
                let verdict = first_sentence(&collection::verdict(races));
                (verdict, &races.machine, &races.started)
            }
        };
        Self {
            page,
            title: heading(saved),
            conclusion,
            machine: prose::machine(machine),
            started: foreign::line(started),
        }
    }
}

/// Returns the first sentence of a verdict, which is the most important sentence.
fn first_sentence(verdict: &str) -> String {
    match verdict.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => verdict.to_owned(),
    }
}

/// Returns a page with links to these pages, in this order.
pub fn index(entries: &[Entry]) -> Vec<u8> {
    let title = words::count(entries.len() as u64, "result");
    let body = html! {
        main {
            h1 { (title) }
            @for entry in entries { (section(entry)) }
        }
    };
    document(&format!("{title}: heapdrome report"), &body, None)
}

fn section(entry: &Entry) -> Markup {
    let name = entry.page.strip_suffix(".html").unwrap_or(&entry.page);
    html! {
        section {
            h2 { a href=(entry.page) { (name) } ": " (entry.title) }
            @if !entry.conclusion.is_empty() { p { (entry.conclusion) } }
            p { small { (entry.started) "; " (entry.machine) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn a_verdict_is_cut_after_its_first_sentence() {
        let long = "Take mimalloc3: 17% less (9 to 23). Each takes more memory.";
        let short = "Take mimalloc3: 17% less (9 to 23).";
        assert_eq!(first_sentence(long), short);
        assert_eq!(first_sentence(short), short);
        assert_eq!(first_sentence(""), "");
    }
}
