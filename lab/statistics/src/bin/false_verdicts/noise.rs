//! Realistic run times, resampled in blocks from recorded or fitted times.

use std::path::Path;

use heapdrome_statistics::{median, median_absolute_deviation};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Mean length of a block, as a number of consecutive recorded runs.
const BLOCK: f64 = 50.0;

/// Number of fitted run times. They are drawn once and resampled like recorded ones.
const FITTED: usize = 50_000;

/// Factor by which a spike from `rival_spikes` lengthens a run of the first rival.
const SPIKE: f64 = 1.5;

/// A simulated machine, with the noise of its runs.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Name of the condition in the table.
    pub name: String,
    /// Recorded run times in seconds, in the order of the runs.
    pub recorded: Vec<f64>,
    /// The median of the logarithms of the recorded times.
    pub centre: f64,
    /// Slowdown of each run relative to the previous one, as a fraction of the recorded time.
    pub drift_per_run: f64,
    /// Fraction by which the first run of each round is slower.
    pub first_slower: f64,
    /// Resolution of the times, in seconds; 0 if the times are exact.
    pub step: f64,
    /// Whether each deviation from the centre, on the log scale, has a random sign.
    pub symmetric: bool,
    /// Factor by which the first rival's deviations are multiplied.
    pub rival_noise: f64,
    /// Share of the first rival's runs that have a spike.
    pub rival_spikes: f64,
    /// Whether the first rival's noise differs from that of the others. If so, the mean estimate
    /// for the first rival must be simulated.
    pub unequal: bool,
    /// Whether the second half of the rivals is 10% slower. Each of these rivals leaves the race
    /// once it is shown to be slower.
    pub leaving: bool,
}

impl Condition {
    /// Returns a condition that uses the recorded times unchanged.
    pub fn plain(name: &str, recorded: Vec<f64>) -> Self {
        let logs: Vec<f64> = recorded.iter().map(|time| time.ln()).collect();
        Self {
            name: name.to_owned(),
            centre: median(&logs).unwrap_or(0.0),
            recorded,
            rival_noise: 1.0,
            ..Self::default()
        }
    }

    /// Returns a stream of run times for one race.
    ///
    /// Blocks of the record are joined by the stationary bootstrap of Politis and Romano (1994);
    /// the end of the record is followed by its beginning. Most spikes and slow periods keep their
    /// recorded lengths, and every race has its own sequence.
    pub fn stream<'a>(&'a self, random: &'a mut ChaCha8Rng) -> Stream<'a> {
        let place = random.random_range(0..self.recorded.len());
        Stream {
            condition: self,
            place,
            run: 0,
            random,
        }
    }
}

/// The consecutive runs of one race.
#[derive(Debug)]
pub struct Stream<'a> {
    condition: &'a Condition,
    place: usize,
    run: usize,
    random: &'a mut ChaCha8Rng,
}

impl Stream<'_> {
    /// Returns the time of the next run in seconds.
    pub fn next(&mut self, run: Kind) -> f64 {
        let condition = self.condition;
        let length = condition.recorded.len();
        self.place = if self.random.random::<f64>() * BLOCK < 1.0 {
            self.random.random_range(0..length)
        } else {
            (self.place + 1) % length
        };
        let mut deviation = condition.recorded[self.place].ln() - condition.centre;
        if condition.symmetric && self.random.random_bool(0.5) {
            deviation = -deviation;
        }
        if run.first_rival {
            deviation *= condition.rival_noise;
            if condition.rival_spikes > 0.0 && self.random.random_bool(condition.rival_spikes) {
                deviation += SPIKE.ln();
            }
        }
        let first = if run.first {
            condition.first_slower
        } else {
            0.0
        };
        let drift = 1.0 + condition.drift_per_run * self.run as f64;
        self.run += 1;
        let time = (condition.centre + deviation).exp() * drift * (1.0 + first);
        match condition.step > 0.0 {
            true => (time / condition.step).round().max(1.0) * condition.step,
            false => time,
        }
    }

    /// Returns a random order of `count` entrants.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.random.random_range(0..=last));
        }
        order
    }
}

/// Properties of a run that change its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    /// Whether the run is the first of its round.
    pub first: bool,
    /// Whether the run is of the first rival.
    pub first_rival: bool,
}

/// Reads run times from a file: CSV with one time per line below the heading `wall_s`, a JSON array
/// of times, or a JSON object with such an array named `wall_s`.
///
/// # Errors
/// When the file cannot be read, or contains no usable times.
pub fn read_recorded(path: &Path) -> Result<Vec<f64>, String> {
    let problem = |reason: String| format!("cannot use {}: {reason}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    parse_recorded(&text).map_err(problem)
}

/// Parses the times in the text of a recorded file, in seconds.
///
/// # Errors
/// When the text is not a list of times, a time is not a positive number, or there are fewer than
/// 100 times.
pub fn parse_recorded(text: &str) -> Result<Vec<f64>, String> {
    let times = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) if !value.is_number() => {
            let list = value.get("wall_s").unwrap_or(&value);
            serde_json::from_value(list.clone()).map_err(|error| error.to_string())?
        }
        _ => parse_lines(text)?,
    };
    match times
        .iter()
        .position(|time: &f64| !(time.is_finite() && *time > 0.0))
    {
        Some(place) => Err(format!("run {} took {} s", place + 1, times[place])),
        None if times.len() < 100 => Err(format!(
            "it has {} run times; record at least 100",
            times.len()
        )),
        None => Ok(times),
    }
}

fn parse_lines(text: &str) -> Result<Vec<f64>, String> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "wall_s");
    lines
        .map(|line| line.parse().map_err(|_| format!("{line:?} is not a time")))
        .collect()
}

/// Draws independent log-normal times with the median and the robust deviation of the recorded
/// times, without spikes or slow periods. Student's t assumes such noise, so the rule's error rate
/// should reach the permitted level.
pub fn log_normal(recorded: &[f64], seed: u64) -> Vec<f64> {
    let logs: Vec<f64> = recorded.iter().map(|time| time.ln()).collect();
    let centre = median(&logs).unwrap_or(0.0);
    let deviation = 1.4826 * median_absolute_deviation(&logs).unwrap_or(0.0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        let z = radius * (std::f64::consts::TAU * random.random::<f64>()).cos();
        (centre + deviation * z).exp()
    };
    (0..FITTED).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_times_are_read_as_csv_and_as_json() {
        let lines: String = (1..=100).map(|run| format!("0.{run:03}\n")).collect();
        let csv = parse_recorded(&format!("wall_s\n{lines}")).expect("a hundred times");
        assert_eq!((csv.len(), csv[99]), (100, 0.1));
        let array = serde_json::to_string(&csv).expect("numbers");
        assert_eq!(parse_recorded(&array), Ok(csv.clone()));
        assert_eq!(parse_recorded(&format!("{{\"wall_s\": {array}}}")), Ok(csv));
    }

    #[test]
    fn unusable_times_are_named() {
        let error = |text: &str| parse_recorded(text).expect_err("not usable");
        assert!(error("1.0\n2.0\n").contains("at least 100"));
        assert!(error("1.0\nfast\n").contains("\"fast\" is not a time"));
        assert!(error("1.0\n-2.0\n").contains("run 2 took -2 s"));
        assert!(error("").contains("0 run times"));
        assert!(error("{\"wall\": [1.0]}").contains("invalid type"));
    }

    #[test]
    fn an_order_holds_every_entrant_once_and_varies() {
        let condition = Condition {
            drift_per_run: 0.5,
            first_slower: 1.0,
            ..Condition::plain("", vec![1.0; 100])
        };
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut stream = condition.stream(&mut random);
        let mut firsts = [0; 4];
        for _ in 0..400 {
            let mut order = stream.order(4);
            firsts[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        assert!(
            firsts.iter().all(|count| (60..140).contains(count)),
            "{firsts:?}"
        );
        let first = Kind {
            first: true,
            ..Kind::default()
        };
        assert_eq!(stream.next(first), 2.0);
        assert_eq!(stream.next(Kind::default()), 1.5);
    }

    #[test]
    fn a_rival_of_its_own_kind_and_coarse_times_are_drawn_so() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let recorded = [vec![1.0; 60], vec![2.0; 40]].concat();
        let rival = Kind {
            first_rival: true,
            ..Kind::default()
        };
        let noisy = Condition {
            rival_noise: 2.0,
            ..Condition::plain("", recorded.clone())
        };
        let mut stream = noisy.stream(&mut random);
        let mut drawn: Vec<f64> = (0..400).map(|_| stream.next(rival)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        drawn.dedup_by(|one, other| (*one - *other).abs() < 1e-9);
        assert_eq!(drawn.len(), 2);
        assert!((drawn[1] - 4.0).abs() < 1e-9, "{drawn:?}");
        let coarse = Condition {
            step: 0.75,
            ..Condition::plain("", recorded)
        };
        let mut stream = coarse.stream(&mut random);
        let read = |_| stream.next(Kind::default());
        assert!((0..400).map(read).all(|time| time == 0.75 || time == 2.25));
    }
}
