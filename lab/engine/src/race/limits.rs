//! Time limits of a race.
//!
//! `--max-time` covers everything from `--setup` on. The pace of the race and the duration of its
//! command limit only the time for rounds.

use std::time::{Duration, Instant};

use heapdrome_schema::{Pace, Run, Stopping};
use heapdrome_statistics::FEWEST_ROUNDS;

/// Minimum number of rounds in a quick race whose command takes less than [`SHORT`].
const QUICK_ROUNDS: u32 = 10;

/// Duration of a run below which a quick race has at least [`QUICK_ROUNDS`] rounds.
const SHORT: Duration = Duration::from_millis(100);

/// Time for the rounds of a quick race.
const QUICK: Duration = Duration::from_secs(10);

/// Time for the rounds of a usual race, as a multiple of the duration of one run.
const RUNS: u32 = 60;

/// Minimum time for the rounds of a usual race: [`RUNS`] runs of a command that takes a second.
const USUAL: Duration = Duration::from_secs(60);

/// Minimum number of rounds for an interval.
const FEWEST: u32 = FEWEST_ROUNDS as u32;

/// Maximum time for the rounds of a usual race, and the time for the rounds of a patient one.
const PATIENT: Duration = Duration::from_secs(600);

/// Returns the time allowed for all rounds at this pace, if one run takes `run`.
pub fn time_of_rounds(pace: Pace, run: Duration) -> Duration {
    match pace {
        Pace::Quick => QUICK,
        Pace::Usual => run.saturating_mul(RUNS).clamp(USUAL, PATIENT),
        Pace::Patient => PATIENT,
    }
}

/// Returns the minimum number of rounds before a race ends by itself, if one run takes `run`.
pub fn least_rounds(stopping: &Stopping, run: Duration) -> u32 {
    match stopping.pace {
        Some(Pace::Quick) if run < SHORT => QUICK_ROUNDS.min(stopping.max_rounds),
        _ => 0,
    }
    .max(stopping.min_rounds)
}

/// Time that a race has taken.
#[derive(Debug, Default)]
pub struct Clock {
    rounds: Duration,
    spent: Duration,
    since: Option<Instant>,
}

impl Clock {
    /// Returns a clock that continues after the `runs` of earlier sessions. The times of these
    /// sessions include only the timed runs, because no other times are known.
    pub fn after(runs: &[Run]) -> Self {
        let rounds = runs.iter().map(|run| Duration::from(run.wall)).sum();
        Self {
            rounds,
            spent: rounds,
            since: None,
        }
    }

    /// Starts the clock when the race begins to work. The clock does not run while the race waits
    /// for other races of its sweep.
    pub fn start(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Stops the clock while the race waits.
    pub fn stop(&mut self) {
        self.spent = self.spent();
        self.since = None;
    }

    /// Adds the time of a round.
    pub fn round_took(&mut self, time: Duration) {
        self.rounds += time;
    }

    /// Returns all time spent on the race.
    pub fn spent(&self) -> Duration {
        self.spent + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the time spent on rounds.
    pub fn rounds(&self) -> Duration {
        self.rounds
    }
}

/// Forecast of a race before its rounds.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// Number of runs in a round.
    pub runs: u32,
    /// Duration of one run.
    pub run: Duration,
    /// Number of rounds that are done.
    pub done: u32,
    /// Number of memory runs to come.
    pub memory_runs: u32,
    /// Time for which the server of a memory run is idle; zero without a server.
    pub idle: Duration,
    /// Time that the race has taken so far.
    pub spent: Duration,
}

impl Outlook {
    /// Returns the total time of the remaining rounds up to `rounds` and of the memory runs.
    fn until(&self, rounds: u32) -> Duration {
        let left = rounds.saturating_sub(self.done);
        let runs = self.run.saturating_mul(left.saturating_mul(self.runs));
        runs.saturating_add(self.time_of_memory_runs())
    }

    /// Returns the time of the memory runs to come.
    fn time_of_memory_runs(&self) -> Duration {
        let run = self.run.saturating_add(self.idle);
        run.saturating_mul(self.memory_runs)
    }

    /// Returns the time left before `--max-time` is used up; `None` without `--max-time`.
    fn left(&self, stopping: &Stopping) -> Option<Duration> {
        let most = stopping.max_time.map(Duration::from)?;
        Some(most.saturating_sub(self.spent))
    }

    /// Returns the longest time that the race can still take.
    pub fn longest(&self, stopping: &Stopping) -> Duration {
        let rounds = self.until(stopping.max_rounds);
        let least = self.until(least_rounds(stopping, self.run));
        let paced = stopping.pace.map(|pace| {
            let rounds = time_of_rounds(pace, self.run);
            least.max(rounds.saturating_add(self.time_of_memory_runs()))
        });
        let limits = [Some(rounds), paced, self.left(stopping)];
        limits.into_iter().flatten().min().unwrap_or(rounds)
    }

    /// Describes the expected time left.
    pub fn tell(&self, stopping: &Stopping) -> String {
        let least = self.until(least_rounds(stopping, self.run));
        let most = self.longest(stopping);
        let may_end_early = stopping.precision.is_some() || stopping.margin.is_some();
        let end = match may_end_early && least < most {
            true => format!("{} to {}", about(least), about(most)),
            false => about(most),
        };
        let told = format!(
            "{} runs a round, about {} each; expected time left: {end}",
            self.runs,
            about(self.run)
        );
        let needed = self.until(FEWEST);
        match self.left(stopping) {
            Some(left) if left < needed => format!(
                "{told}; there is no interval before {FEWEST} rounds, so set --max-time to about {} or \
                 race fewer allocators with -a",
                about(self.spent + needed)
            ),
            _ => told,
        }
    }
}

/// Explains the end of a race that has no time for another round.
pub fn used_up(rounds: u32) -> String {
    match rounds < FEWEST {
        true => format!(
            "the time was used up after {rounds} rounds, and there is no interval before {FEWEST}"
        ),
        false => "the time was used up".to_owned(),
    }
}

/// Formats a duration for a reader: in whole seconds from ten seconds on, finer below.
pub fn about(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", 1000.0 * seconds),
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds => {
            let whole = Duration::from_secs(seconds.round() as u64);
            humantime::format_duration(whole).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_usual_race_of_a_short_command_takes_a_minute_and_none_more_than_ten() {
        let usual = |run| time_of_rounds(Pace::Usual, run);
        assert_eq!([usual(ms(5)), usual(ms(1000))], [USUAL; 2]);
        assert_eq!(usual(ms(5000)), Duration::from_secs(300));
        assert_eq!(usual(Duration::MAX), PATIENT);
    }

    #[test]
    fn a_first_impression_has_ten_rounds_of_a_short_command() {
        let quick = Stopping {
            min_rounds: 5,
            max_rounds: 100,
            pace: Some(Pace::Quick),
            ..Stopping::default()
        };
        assert_eq!(time_of_rounds(Pace::Quick, ms(5)), QUICK);
        assert_eq!(least_rounds(&quick, ms(99)), 10);
        assert_eq!(least_rounds(&quick, ms(100)), 5);
        let few = Stopping {
            max_rounds: 7,
            ..quick.clone()
        };
        assert_eq!(least_rounds(&few, ms(5)), 7);
        let usual = Stopping {
            pace: Some(Pace::Usual),
            ..quick
        };
        assert_eq!(least_rounds(&usual, ms(5)), 5);
    }

    const OUTLOOK: Outlook = Outlook {
        runs: 8,
        run: ms(500),
        done: 0,
        memory_runs: 6,
        idle: Duration::ZERO,
        spent: Duration::from_secs(8),
    };

    fn told(stopping: &Stopping) -> String {
        OUTLOOK.tell(stopping)
    }

    #[test]
    fn the_expected_time_left_is_told_before_the_rounds() {
        let usual = Stopping {
            min_rounds: 5,
            max_rounds: 150,
            margin: Some(0.02),
            until_decided: true,
            pace: Some(Pace::Usual),
            ..Stopping::default()
        };
        assert_eq!(
            told(&usual),
            "8 runs a round, about 500 ms each; expected time left: 23s to 1m 3s"
        );
        let fixed = Stopping {
            min_rounds: 5,
            max_rounds: 7,
            ..Stopping::default()
        };
        assert!(told(&fixed).ends_with("left: 31s"), "{}", told(&fixed));
        let server = Outlook {
            idle: Duration::from_secs(3),
            ..OUTLOOK
        };
        let told_of_server = server.tell(&fixed);
        assert!(told_of_server.ends_with("left: 49s"), "{told_of_server}");
        let short = Stopping {
            max_time: Some(Duration::from_secs(15).into()),
            pace: None,
            ..usual
        };
        let told = told(&short);
        assert!(
            told.contains(
                "left: 7.0 s; there is no interval before 5 rounds, so set --max-time to about 31s"
            ),
            "{told}"
        );
    }

    #[test]
    fn a_clock_that_stands_counts_nothing() {
        let mut clock = Clock::default();
        clock.round_took(ms(7));
        assert_eq!((clock.rounds(), clock.spent()), (ms(7), Duration::ZERO));
        clock.start();
        clock.stop();
        let stood = clock.spent();
        assert_eq!(clock.spent(), stood);
    }

    #[test]
    fn times_are_told_as_finely_as_a_person_wants_them() {
        let told = [12, 4_560, 12_400, 64_000].map(|time| about(ms(time)));
        assert_eq!(told, ["12 ms", "4.6 s", "12s", "1m 4s"]);
    }
}
