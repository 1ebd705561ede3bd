//! How much of the document `heapdrome suite lgalloc` runs.

use std::time::Duration;

use heapdrome_record::Scale;

/// The amounts of one form.
pub struct Form {
    /// Rounds of all cells.
    pub rounds: u32,
    /// Rounds beyond these, of cells whose targets or sentences are open.
    pub more_rounds: u32,
    /// No round begins that would end later, from the start of heapdrome on.
    pub within: Option<Duration>,
    /// The time of each cell in swap.
    pub seconds: Duration,
    /// The longest warm-up before.
    pub warm_up: Duration,
    /// The time of each cell of the throughput benchmark, and of its warm-up.
    pub throughput: [Duration; 2],
    /// The limit of the paging benchmark, whose working set is three times that; under heavier pressure
    /// both are a quarter.
    pub paging: u64,
    /// Bytes of the working set of the sweep and the strategies; the limit of the strategies is an
    /// eighth of it.
    pub total: u64,
}

impl Form {
    /// That of a scale.
    pub fn of(scale: Scale) -> Self {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        match scale {
            Scale::Quick => Self {
                rounds: 3,
                more_rounds: 12,
                within: minutes(13),
                seconds: Duration::from_millis(700),
                warm_up: Duration::from_millis(3000),
                throughput: [200, 100].map(Duration::from_millis),
                paging: 128 << 20,
                total: 512 << 20,
            },
            Scale::Usual => Self {
                rounds: 5,
                more_rounds: 20,
                within: minutes(38),
                seconds: Duration::from_millis(1500),
                warm_up: Duration::from_millis(8000),
                throughput: [600, 200].map(Duration::from_millis),
                paging: 512 << 20,
                total: 1 << 30,
            },
            Scale::Published => Self {
                rounds: 5,
                more_rounds: 10,
                within: None,
                seconds: Duration::from_millis(5000),
                warm_up: Duration::from_millis(15000),
                throughput: [5000, 1000].map(Duration::from_millis),
                paging: 512 << 20,
                total: 4 << 30,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_forms_end_in_time() {
        for (scale, most) in [(Scale::Quick, 15), (Scale::Usual, 40)] {
            let within = Form::of(scale).within.expect("it has an end");
            assert!(within + Duration::from_secs(120) <= Duration::from_secs(60 * most));
        }
    }
}
