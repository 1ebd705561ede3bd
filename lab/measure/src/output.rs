//! Output of a command: its hash, its last lines, and its metrics.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use heapdrome_schema::{Metric, Options};
use heapdrome_system::sha256_of_file;
use regex::Regex;
use sha2::{Digest, Sha256};

use crate::MeasureError;

/// Maximum number of lines kept from the standard error of a failed command.
const TAIL_LINES: usize = 10;
/// Maximum number of bytes kept from the standard error of a failed command.
const TAIL_BYTES: u64 = 4096;

/// Returns the last lines of a file; empty if it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    let bytes = last_bytes(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn last_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A metric with its compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) name: String,
    expression: Regex,
}

pub(crate) fn patterns(metrics: &[Metric]) -> Result<Vec<Pattern>, MeasureError> {
    let parsed = metrics
        .iter()
        .map(|metric| match Regex::new(&metric.pattern) {
            Ok(expression) => Ok(Pattern {
                name: metric.name.clone(),
                expression,
            }),
            Err(error) => Err(bad_metric(&metric.name, &error)),
        });
    parsed.collect()
}

fn bad_metric(name: &str, error: &regex::Error) -> MeasureError {
    let text = error.to_string();
    MeasureError::BadMetric {
        name: name.to_owned(),
        reason: text.lines().last().unwrap_or_default().to_owned(),
    }
}

impl Pattern {
    /// Returns the number at the pattern's last match, because programs print their totals last.
    /// Returns `None` if nothing matches, or if the match is not a finite number.
    pub(crate) fn find(&self, text: &str) -> Option<f64> {
        let found = self.expression.captures_iter(text).last()?;
        let number = found.get(1).or_else(|| found.get(0))?.as_str().trim();
        number
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }
}

/// Patterns of output that comparisons ignore because it differs from run to run, such as a
/// program's own timings.
#[derive(Clone, Debug)]
pub(crate) struct Masks(Vec<regex::bytes::Regex>);

impl Masks {
    /// Compiles the masks of a plan: the numbers of its metrics, and its additional patterns.
    pub(crate) fn of(options: &Options) -> Result<Self, MeasureError> {
        let metrics = options.metrics.iter();
        let metrics = metrics.map(|metric| (metric.name.as_str(), &metric.pattern));
        let others = options.masked.iter().map(|pattern| ("(masked)", pattern));
        let compiled = metrics.chain(others).map(|(name, pattern)| {
            regex::bytes::Regex::new(pattern).map_err(|error| bad_metric(name, &error))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the hexadecimal SHA-256 of a file's content after [`MARK`] has replaced every masked
    /// range.
    pub(crate) fn hash(&self, path: &Path) -> io::Result<String> {
        if self.0.is_empty() {
            return sha256_of_file(path);
        }
        let text = std::fs::read(path)?;
        let mut hash = Sha256::new();
        let mut end = 0;
        for (from, to) in self.ranges(&text) {
            hash.update(&text[end..from]);
            hash.update(MARK);
            end = to;
        }
        hash.update(&text[end..]);
        Ok(format!("{:x}", hash.finalize()))
    }

    /// Returns the masked ranges of `text`, in order and without overlaps. Of each match, the first
    /// group is masked, or the whole match if there is no group.
    fn ranges(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let matches = self.0.iter().flat_map(|mask| mask.captures_iter(text));
        let of_match = |found: regex::bytes::Captures<'_>| {
            let range = found.get(1).or_else(|| found.get(0))?.range();
            Some((range.start, range.end))
        };
        let mut ranges: Vec<_> = matches.filter_map(of_match).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        merged
    }
}

/// Replacement for a masked range. No text output contains it.
const MARK: &[u8] = b"\0masked\0";

#[cfg(test)]
mod tests {
    use heapdrome_schema::Better;

    use super::*;

    fn pattern(text: &str) -> Result<Vec<Pattern>, MeasureError> {
        let metric = Metric {
            name: "m".into(),
            pattern: text.into(),
            better: Better::Higher,
        };
        patterns(&[metric])
    }

    #[test]
    fn figures_are_masked_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stdout");
        let metric = Metric {
            name: "rate".into(),
            pattern: r"rate (\d+)".into(),
            better: Better::Higher,
        };
        let options = Options {
            metrics: vec![metric],
            masked: vec![r"took \S+".into()],
            ..Options::default()
        };
        let masks = Masks::of(&options).expect("patterns");
        let hash = |text: &[u8]| {
            std::fs::write(&path, text).expect("written");
            masks.hash(&path).expect("readable")
        };
        let one = hash(b"rate 17, took 3s, sum ab\xff\n");
        assert_eq!(one, hash(b"rate 2999, took 41s, sum ab\xff\n"));
        assert_ne!(one, hash(b"rate 17, took 3s, sum ac\xff\n"));
        assert_ne!(one, hash(b"rite 17, took 3s, sum ab\xff\n"));
        let plain = Masks::of(&Options::default()).expect("none");
        std::fs::write(&path, b"a").expect("written");
        let whole = plain.hash(&path).expect("readable");
        assert_eq!(whole, sha256_of_file(&path).expect("readable"));
    }

    #[test]
    fn overlapping_masks_are_one() {
        let options = Options {
            masked: vec!["abc".into(), "bcd".into(), "e".into()],
            ..Options::default()
        };
        let masks = Masks::of(&options).expect("patterns");
        assert_eq!(masks.ranges(b"xabcdex"), [(1, 5), (5, 6)]);
    }

    #[test]
    fn the_first_group_of_the_last_match_is_the_number() {
        let found = |expression: &str, text: &str| {
            pattern(expression).expect("a pattern").remove(0).find(text)
        };
        assert_eq!(found(r"ops: (\S+)", "ops: 1\nops: 2.5e3\n"), Some(2500.0));
        assert_eq!(found(r"\d+", "a 17 b"), Some(17.0));
        assert_eq!(found(r"ops: (\S+)", "ops: many"), None);
        assert_eq!(found(r"ops: (\S+)", "nothing"), None);
        assert_eq!(found(r"(nan)", "nan"), None);
    }

    #[test]
    fn a_wrong_pattern_is_told_by_name() {
        let error = pattern("(").expect_err("unclosed").to_string();
        assert!(error.starts_with("the pattern of metric m"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[test]
    fn the_tail_is_the_last_ten_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stderr");
        assert_eq!(tail(&path), "");
        let text: String = (0..5000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&path, text + "\n").expect("written");
        let tail = tail(&path);
        assert!(
            tail.starts_with("line 4990\n") && tail.ends_with("line 4999"),
            "{tail}"
        );
    }
}
