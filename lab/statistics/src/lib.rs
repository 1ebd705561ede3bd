//! What a race's figures say, and how sure one may be of it.
//!
//! Pure functions over slices: no process, no clock, no file, no other room of the lab. Samples are
//! given in the order of the rounds, and two series belong together by index: sample `i` of each
//! comes from round `i`. Undefined samples (NaN) mark rounds that are missing and are left out.
//!
//! - [`Rule::compare_within`] gives the ratio of an entrant to the baseline with an interval that
//!   holds at every round at which one looks, over all comparisons of the race together;
//! - [`leader_over`] and [`is_decided`] say who is beaten, and on whom nothing is open;
//! - [`Stopping::decide`] says whether the race has run long enough;
//! - [`change`] and [`ratio_of_means`] are for series of different races, whose rounds do not pair;
//! - [`geometric_mean`] puts the ratios of several races together;
//! - [`slowdown`] says how much longer a few runs took than others, with their range;
//! - [`drift`], [`outliers`] and the summaries describe one series.
//!
//! Which rule is used, why it holds and what was measured about it: `docs/statistics.md`.

mod boundary;
mod change;
mod drift;
mod geometric;
mod huber;
mod independent;
mod randomisation;
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
pub use independent::{Interval, mean_interval, ratio_of_means};
pub use rates::{Welch, upper_bound, welch};
pub use rounds::Rounds;
pub use rule::{Estimate, FEWEST_ROUNDS, Rule, Shown, typical};
pub use slowdown::{Slowdown, slowdown};
pub use standing::{Leader, Range, Standing, is_decided, leader_over};
pub use stop::{Decision, Stopping};
pub use summary::{mean, median, median_absolute_deviation, outliers, standard_deviation};
