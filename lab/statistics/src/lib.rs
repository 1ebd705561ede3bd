//! Statistics of races: estimates, confidence intervals, verdicts, and stopping.
//!
//! The functions compute from their arguments alone. They use no process, clock or file, and no
//! other crate of the lab. Samples are in the order of the rounds. Two series of one race are
//! paired by index: sample `i` of each comes from round `i`. Undefined samples (NaN) stand for
//! missing rounds and are omitted.
//!
//! - [`Rule::compare_within`] returns the ratio of an entrant to the baseline or to another
//!   entrant. For ratios to the baseline, the intervals are valid at every round and simultaneous
//!   within the race;
//! - [`leader_over`] finds the entrant that beats a rival, and [`is_decided`] determines whether
//!   the race has decided on a rival;
//! - [`Stopping::decide`] decides whether the race has run long enough;
//! - [`change`] and [`ratio_of_means`] compare series of different races, whose rounds do not pair;
//! - [`geometric_mean`] combines the ratios of several races;
//! - [`rank_correlation`] compares two orders, with ties;
//! - [`slowdown`] compares the times of a few runs, with their range;
//! - [`only_grows`] determines whether a series only grows, and how fast;
//! - [`drift`], [`outliers`] and the summaries describe one series.
//!
//! `docs/statistics.md` describes the rule and the reasons why it is valid, and
//! `docs/statistics-results.md` its measured error rates.

mod boundary;
mod change;
mod drift;
mod geometric;
mod growth;
mod huber;
mod independent;
mod randomisation;
mod rank;
mod rates;
mod rounds;
mod rule;
mod slowdown;
mod standing;
mod stop;
mod summary;
mod trimmed;

pub use change::{Figures, change};
pub use drift::{Drift, drift};
pub use geometric::geometric_mean;
pub use growth::{Growth, only_grows};
pub use independent::{Interval, mean_interval, ratio_of_means};
pub use rank::{rank_correlation, ranks};
pub use rates::{Welch, upper_bound, welch};
pub use rounds::Rounds;
pub use rule::{Estimate, FEWEST_ROUNDS, Rule, Shown, typical};
pub use slowdown::{Slowdown, slowdown};
pub use standing::{Leader, Range, Standing, is_decided, leader_over};
pub use stop::{Decision, Stopping};
pub use summary::{mean, median, median_absolute_deviation, outliers, standard_deviation};
