//! A history of files that look like source text, as a stream for `git fast-import`.

use std::io::{self, Write};

use crate::random::Random;

/// Version of the generated history; increase it when the history changes.
pub(super) const VERSION: &str = "git history 1";
/// Name of the only branch.
pub(super) const BRANCH: &str = "main";

const FILES: u64 = 60;
const WORDS: [&str; 16] = [
    "allocate", "release", "page", "arena", "slab", "magazine", "span", "class", "return", "int",
    "size", "void", "static", "const", "remote", "thread",
];
/// Time of the first commit, in seconds since 1970.
const FIRST: u64 = 1_600_000_000;
/// Time between two commits in seconds.
const APART: u64 = 600;

/// Returns the path of a file of the history.
pub(super) fn file_name(number: u64) -> String {
    format!("folder{}/file{number}.c", number % 7)
}

/// Writes a stream of `commits` commits. The first adds every file, and each of the others edits
/// one to three files.
pub(super) fn write(out: &mut impl Write, commits: u64) -> io::Result<()> {
    let mut random = Random::new(42);
    let mut files: Vec<Vec<String>> = (0..FILES)
        .map(|_| {
            let lines = 40 + random.below(160);
            (0..lines).map(|_| line(&mut random)).collect()
        })
        .collect();
    for commit in 0..commits {
        head(out, &mut random, commit)?;
        let mut changed: Vec<u64> = match commit {
            0 => (0..FILES).collect(),
            _ => (0..1 + random.below(3))
                .map(|_| random.below(FILES))
                .collect(),
        };
        changed.sort_unstable();
        changed.dedup();
        for number in changed {
            let lines = &mut files[number as usize];
            if commit > 0 {
                edit(lines, &mut random);
            }
            let size: usize = lines.iter().map(|line| line.len() + 1).sum();
            writeln!(out, "M 100644 inline {}\ndata {size}", file_name(number))?;
            for line in lines {
                writeln!(out, "{line}")?;
            }
        }
    }
    writeln!(out, "done")
}

fn head(out: &mut impl Write, random: &mut Random, commit: u64) -> io::Result<()> {
    let body: Vec<_> = (0..20).map(|_| random.word(&WORDS)).collect();
    let message = format!("Change number {commit}\n\n{}\n", body.join(" "));
    let (mark, time) = (commit + 1, FIRST + commit * APART);
    writeln!(
        out,
        "commit refs/heads/{BRANCH}\nmark :{mark}\n\
         committer A Person <person@example.org> {time} +0000\n\
         data {}\n{message}",
        message.len()
    )?;
    match commit {
        0 => Ok(()),
        _ => writeln!(out, "from :{commit}"),
    }
}

/// Changes one to four places of a file: inserts, removes or replaces lines.
fn edit(lines: &mut Vec<String>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(lines.len() as u64) as usize;
        match random.below(3) {
            0 => {
                let new: Vec<_> = (0..1 + random.below(8)).map(|_| line(random)).collect();
                lines.splice(at..at, new);
            }
            1 => {
                let end = lines.len().min(at + 1 + random.below(7) as usize);
                lines.drain(at..end);
            }
            _ => lines[at] = line(random),
        }
        if lines.is_empty() {
            lines.push(line(random));
        }
    }
}

fn line(random: &mut Random) -> String {
    let words: Vec<_> = (0..2 + random.below(6))
        .map(|_| random.word(&WORDS))
        .collect();
    format!("    {} {};", words.join(" "), random.below(10_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(commits: u64) -> String {
        let mut text = Vec::new();
        write(&mut text, commits).expect("memory");
        String::from_utf8(text).expect("ASCII")
    }

    #[test]
    fn the_stream_is_whole_and_the_same_each_time() {
        let text = stream(30);
        assert_eq!(text, stream(30));
        assert_eq!(text.matches("commit refs/heads/main\n").count(), 30);
        assert!(text.starts_with(stream(3).trim_end_matches("done\n")));
        assert!(text.ends_with("done\n"));
    }

    #[test]
    fn every_size_is_that_of_the_text_after_it() {
        let text = stream(30);
        let mut rest = text.as_str();
        let mut seen = 0;
        while let Some((_, after)) = rest.split_once("\ndata ") {
            let (size, text) = after.split_once('\n').expect("a size ends its line");
            let size: usize = size.parse().expect("a number");
            let next = text[size..].trim_start_matches('\n');
            let known = ["from ", "M 100644 ", "commit ", "done"];
            assert!(
                known.iter().any(|word| next.starts_with(word)),
                "{next:.40}"
            );
            rest = &text[size - 1..];
            seen += 1;
        }
        assert!(seen > 30 + FILES, "{seen}");
    }
}
