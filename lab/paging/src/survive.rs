//! The smallest memory limit under which a command still finishes, and its slowdown at and above
//! that limit.

use std::time::Duration;

use heapdrome_schema::{Bytes, Multiple, Survival, Trial};
use heapdrome_statistics::{median, slowdown};

use crate::{Contained, Ended, Error};

/// Granularity of limits. The search cannot be more precise.
pub const STEP: Bytes = Bytes::from_kib(64);
/// Maximum number of doublings of the first limit if that limit is the command's own peak.
const DOUBLINGS: u32 = 3;
/// First limit if no run reports its peak. cgroup v2 has had `memory.peak` only since Linux 5.19.
const BLIND: Bytes = Bytes::from_mib(64);
/// Maximum number of doublings of `BLIND`.
const BLIND_DOUBLINGS: u32 = 16;
/// Multiples of the smallest limit at which the slowdown is measured.
const MULTIPLES: [f64; 3] = [1.0, 1.5, 2.0];

/// Function that runs the command once, with or without a limit.
type Running<'a> = &'a mut dyn FnMut(Option<Bytes>) -> Result<Contained, Error>;

/// The settings of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Number of runs under a limit that must all finish.
    pub runs: u32,
    /// Relative precision at which the search for the smallest limit ends.
    pub precision: f64,
}

impl Search {
    /// Searches for the smallest limit, starting at the command's peak without a limit. Then
    /// measures the slowdown at multiples of the smallest limit. `run` runs the command once, with
    /// or without a limit. `tell` receives the trial of every limit.
    ///
    /// # Errors
    /// When `run` fails.
    pub fn smallest(
        &self,
        run: Running<'_>,
        tell: &mut dyn FnMut(&Trial),
    ) -> Result<Survival, Error> {
        let mut found = Survival::default();
        for _ in 0..self.runs {
            let one = run(None)?;
            let peak = one.tally.peak.unwrap_or_default();
            found.peak_bytes = found.peak_bytes.max(peak.0);
            match told(&one.ended) {
                None => found.unlimited_s.push(one.wall.as_secs_f64()),
                Some(why) => {
                    found.failure = Some(format!("fails without a limit: {why}"));
                    return Ok(found);
                }
            }
        }
        let (first, doublings) = match found.peak_bytes {
            0 => (BLIND, BLIND_DOUBLINGS),
            peak => (Bytes(peak).rounded_up_to(STEP), DOUBLINGS),
        };
        let smallest = self.bisect(first, doublings, &mut |limit| {
            let trial = self.trial(limit, run)?;
            tell(&trial);
            let survived = trial.survived();
            found.trials.push(trial);
            Ok(survived)
        })?;
        let Some(smallest) = smallest else {
            let most = first * (1 << doublings);
            found.failure = Some(match found.peak_bytes {
                0 => format!("does not finish under {most}"),
                _ => format!("does not finish under eight times its own peak, {most}"),
            });
            return Ok(found);
        };
        found.smallest_bytes = Some(smallest.0);
        self.above(smallest, &mut found, run, tell)?;
        Ok(found)
    }

    /// Measures the slowdown of the command at multiples of the smallest limit.
    fn above(
        &self,
        smallest: Bytes,
        found: &mut Survival,
        run: Running<'_>,
        tell: &mut dyn FnMut(&Trial),
    ) -> Result<(), Error> {
        for times in MULTIPLES {
            let limit = Bytes((smallest.as_f64() * times) as u64).rounded_up_to(STEP);
            let known = |trial: &&Trial| trial.limit_bytes == limit.0 && trial.survived();
            let trial = match found.trials.iter().rfind(known) {
                // At the smallest limit itself, the runs of the search are also the measurement.
                Some(trial) => trial.clone(),
                None => self.trial(limit, run)?,
            };
            tell(&trial);
            let slower = slowdown(&trial.wall_s, &found.unlimited_s);
            let slower = slower.filter(|_| trial.survived());
            found.at.push(Multiple {
                times,
                trial,
                slower: slower.map(|slower| slower.median),
                range: slower.map(|slower| [slower.low, slower.high]),
            });
        }
        Ok(())
    }

    /// Returns the smallest limit that `survives` accepts, to the search's precision. Returns
    /// `None` if it rejects even the last doubling of `first`.
    fn bisect(
        &self,
        first: Bytes,
        most_doublings: u32,
        survives: &mut dyn FnMut(Bytes) -> Result<bool, Error>,
    ) -> Result<Option<Bytes>, Error> {
        let (mut low, mut high) = (Bytes(0), first);
        let mut doublings = 0;
        while !survives(high)? {
            if doublings == most_doublings {
                return Ok(None);
            }
            doublings += 1;
            (low, high) = (high, high * 2);
        }
        loop {
            let near = Bytes((high.as_f64() * self.precision) as u64).max(STEP);
            if high - low <= near {
                return Ok(Some(high));
            }
            let middle = Bytes(low.0.midpoint(high.0)).rounded_up_to(STEP);
            if middle >= high {
                return Ok(Some(high));
            }
            match survives(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
    }

    /// Runs the command under one limit until one run fails or all runs have finished.
    fn trial(&self, limit: Bytes, run: Running<'_>) -> Result<Trial, Error> {
        let mut trial = Trial {
            limit_bytes: limit.0,
            ..Trial::default()
        };
        for _ in 0..self.runs {
            let one = run(Some(limit))?;
            // Without swap, a group of version 1 hits the combined limit of memory and swap first.
            let hits = [one.tally.limit_hits, one.tally.swap_limit_hits];
            trial.limit_hits += hits.into_iter().flatten().sum::<u64>();
            trial.oom_kills += one.tally.oom_kills.unwrap_or(0);
            match told(&one.ended) {
                None => trial.wall_s.push(one.wall.as_secs_f64()),
                Some(why) => {
                    trial.failure = Some(why);
                    break;
                }
            }
        }
        Ok(trial)
    }
}

/// Describes why a run did not finish; `None` if it finished.
fn told(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Finished => None,
        Ended::OutOfMemory(1) => Some("a process was OOM-killed".to_owned()),
        Ended::OutOfMemory(count) => Some(format!("{count} processes were OOM-killed")),
        Ended::TooLong => Some("took too long and was stopped".to_owned()),
        Ended::Failed(how) => Some(how.clone()),
    }
}

/// Returns the time limit of a run: `times` its duration without a memory limit, but at least
/// `LEAST`.
#[must_use]
pub fn patience(usual: Duration, times: f64) -> Duration {
    const LEAST: Duration = Duration::from_secs(10);
    LEAST.max(Duration::try_from_secs_f64(usual.as_secs_f64() * times).unwrap_or(Duration::MAX))
}

/// Describes the result of trying one limit.
#[must_use]
pub fn told_trial(trial: &Trial) -> String {
    let told = match (&trial.failure, median(&trial.wall_s)) {
        (Some(why), _) => why.clone(),
        (None, Some(median)) => format!("finishes, median {median:.3} s"),
        (None, None) => "not run".to_owned(),
    };
    format!("under {}: {told}", Bytes(trial.limit_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;

    const SEARCH: Search = Search {
        runs: 3,
        precision: 0.02,
    };

    fn contained(ended: Ended, seconds: f64) -> Contained {
        Contained {
            ended,
            wall: Duration::from_secs_f64(seconds),
            tally: Tally {
                peak: Some(Bytes::from_mib(100)),
                limit_hits: Some(1),
                ..Tally::default()
            },
        }
    }

    /// Returns a command that needs this number of bytes. It slows down under limits below twice
    /// that number.
    fn needing(bytes: u64) -> impl FnMut(Option<Bytes>) -> Result<Contained, Error> {
        move |limit| {
            Ok(match limit {
                Some(Bytes(limit)) if limit < bytes => contained(Ended::OutOfMemory(1), 0.1),
                Some(Bytes(limit)) if limit < 2 * bytes => contained(Ended::Finished, 3.0),
                _ => contained(Ended::Finished, 1.0),
            })
        }
    }

    #[test]
    fn the_smallest_limit_is_found_to_the_precision() {
        for needed in [1 << 20, 37 << 20, 99 << 20, 150 << 20] {
            let mut told = 0;
            let found = SEARCH.smallest(&mut needing(needed), &mut |_| told += 1);
            let found = found.expect("nothing fails");
            let smallest = found.smallest_bytes.expect("there is one");
            assert!(smallest >= needed && smallest.is_multiple_of(STEP.0));
            let most = (needed as f64 * 1.03) as u64 + STEP.0;
            assert!(smallest <= most, "{needed} {smallest}");
            assert_eq!(found.at.len(), 3);
            assert_eq!(found.at[0].slower, Some(3.0));
            assert_eq!(found.at[0].range, Some([3.0; 2]));
            assert_eq!(found.at[2].slower, Some(1.0));
            assert_eq!(told, found.trials.len() + 3);
        }
    }

    /// Simulates a kernel that does not report the peak memory of a group.
    #[test]
    fn the_smallest_limit_is_found_without_a_peak() {
        for needed in [1 << 20, 150 << 20, 3 << 30] {
            let mut needing = needing(needed);
            let mut blind = |limit| {
                let mut one: Contained = needing(limit)?;
                one.tally.peak = None;
                Ok(one)
            };
            let found = SEARCH.smallest(&mut blind, &mut |_| {});
            let found = found.expect("nothing fails");
            assert_eq!((found.peak_bytes, &found.failure), (0, &None));
            let smallest = found.smallest_bytes.expect("there is one");
            let most = (needed as f64 * 1.03) as u64 + STEP.0;
            assert!((needed..=most).contains(&smallest), "{needed} {smallest}");
        }
    }

    /// A limit passes only if all three runs finish.
    #[test]
    fn one_run_of_three_that_is_killed_counts_as_killed() {
        let mut runs = 0;
        let mut flaky = |limit: Option<Bytes>| {
            runs += 1;
            Ok(match limit {
                Some(Bytes(limit)) if limit < 50 << 20 && runs % 3 == 0 => {
                    contained(Ended::OutOfMemory(2), 0.1)
                }
                Some(Bytes(limit)) if limit < 10 << 20 => contained(Ended::OutOfMemory(1), 0.1),
                _ => contained(Ended::Finished, 1.0),
            })
        };
        let found = SEARCH
            .smallest(&mut flaky, &mut |_| {})
            .expect("nothing fails");
        assert!(found.smallest_bytes.expect("there is one") >= 50 << 20);
    }

    #[test]
    fn what_never_finishes_is_told() {
        let mut broken = |_| Ok(contained(Ended::Failed("exit status: 1".to_owned()), 0.1));
        let found = SEARCH
            .smallest(&mut broken, &mut |_| {})
            .expect("nothing fails");
        let why = found.failure.expect("a reason");
        assert!(why.contains("without a limit") && why.contains("exit status: 1"));
        let mut greedy = |limit: Option<Bytes>| {
            Ok(match limit {
                None => contained(Ended::Finished, 1.0),
                Some(_) => contained(Ended::TooLong, 10.0),
            })
        };
        let found = SEARCH
            .smallest(&mut greedy, &mut |_| {})
            .expect("nothing fails");
        assert_eq!(found.smallest_bytes, None);
        assert_eq!(found.trials.len(), 4);
    }

    #[test]
    fn an_interrupt_ends_the_search() {
        let mut stopped = |_| Err(Error::Interrupted);
        let found = SEARCH.smallest(&mut stopped, &mut |_| {});
        assert!(matches!(found, Err(Error::Interrupted)));
    }

    #[test]
    fn patience_has_a_least() {
        assert_eq!(patience(Duration::from_millis(1), 20.0).as_secs(), 10);
        assert_eq!(patience(Duration::from_secs(3), 20.0).as_secs(), 60);
    }
}
