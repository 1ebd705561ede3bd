//! What is plotted: one figure of every entrant that counts.

use heapdrome_record::{Better, Bytes, EntrantResult, Nanoseconds, Role, Series};

use crate::foreign;
use crate::sheet::{OPERATIONS, OVERHEAD, PEAK_RSS, PEAK_TREE, Sheet, WALL, versus};
use crate::words;

/// How values of a figure are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    Number,
}

impl Unit {
    /// A value with its unit, as the tables tell it.
    pub(crate) fn tell(self, value: f64) -> String {
        if !value.is_finite() {
            return words::NONE.to_owned();
        }
        match self {
            Self::Seconds => Nanoseconds::from_seconds(value).to_string(),
            Self::Bytes => Bytes(value.round() as u64).to_string(),
            Self::Number => words::short_number(value),
        }
    }
}

/// One entrant's values.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) median: f64,
    /// In the order of the rounds.
    pub(crate) samples: Vec<f64>,
    /// Places in `samples`.
    pub(crate) outliers: Vec<usize>,
}

impl Values {
    fn of(series: Option<&Series>) -> Option<Self> {
        let series = series.filter(|series| series.median.is_finite())?;
        Some(Self {
            median: series.median,
            samples: series.samples.clone(),
            outliers: series.outliers.clone(),
        })
    }

    /// User and system time together: the sum of their medians, as in the tables.
    fn cpu(entrant: &EntrantResult) -> Option<Self> {
        let user = Self::of(entrant.user_s.as_ref())?;
        let system = Self::of(entrant.system_s.as_ref())?;
        let pairs = user.samples.iter().zip(&system.samples);
        Some(Self {
            median: user.median + system.median,
            samples: pairs.map(|(user, system)| user + system).collect(),
            outliers: Vec::new(),
        })
    }
}

/// An entrant's ratio to the baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) at: f64,
    /// The interval, where there is one.
    pub(crate) ends: Option<[f64; 2]>,
}

/// One figure over all entrants that count.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// Unique in a race, and fit for a file's name.
    pub(crate) id: String,
    /// Its key among the comparisons.
    pub(crate) key: String,
    /// What it is called in a sentence.
    pub(crate) title: String,
    pub(crate) better: Better,
    pub(crate) unit: Unit,
    /// By place in the ranking.
    pub(crate) values: Vec<Option<Values>>,
}

impl Measure {
    /// The ratio of the entrant in this place of the ranking. Without a comparison it is that of the
    /// medians, which has no interval.
    pub(crate) fn ratio(&self, sheet: &Sheet<'_>, place: usize) -> Option<Ratio> {
        let entrant = sheet.rows.get(place)?.entrant;
        if entrant.role == Role::Baseline {
            return self.values.get(place)?.as_ref().map(|_| Ratio {
                at: 1.0,
                ends: None,
            });
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if let Some(compared) = versus(entrant, &self.key).filter(|known| positive(known.ratio)) {
            let ends = [compared.low, compared.high];
            return Some(Ratio {
                at: compared.ratio,
                ends: ends.iter().all(|end| positive(*end)).then_some(ends),
            });
        }
        let unit = self.baseline(sheet)?.median;
        let own = self.values.get(place)?.as_ref()?.median;
        positive(own / unit).then_some(Ratio {
            at: own / unit,
            ends: None,
        })
    }

    /// The values of the baseline.
    fn baseline(&self, sheet: &Sheet<'_>) -> Option<&Values> {
        let is_baseline = |row: &crate::sheet::Row<'_>| row.entrant.role == Role::Baseline;
        self.values
            .get(sheet.rows.iter().position(is_baseline)?)?
            .as_ref()
    }

    /// `less is better`.
    pub(crate) fn direction(&self) -> &'static str {
        words::direction(self.better)
    }
}

/// The figures that any entrant of a race has, wall time first.
pub(crate) fn measures(sheet: &Sheet<'_>) -> Vec<Measure> {
    let lower =
        |id: &str, key: &str, title: &str, unit, of: &dyn Fn(&EntrantResult) -> Option<Values>| {
            Measure {
                id: id.to_owned(),
                key: key.to_owned(),
                title: title.to_owned(),
                better: Better::Lower,
                unit,
                values: sheet.rows.iter().map(|row| of(row.entrant)).collect(),
            }
        };
    let mut all = vec![
        lower("wall", WALL, "wall time", Unit::Seconds, &|e| {
            Values::of(e.wall_s.as_ref())
        }),
        lower("cpu", "cpu_s", "CPU time", Unit::Seconds, &Values::cpu),
        lower("memory", PEAK_RSS, "peak RSS", Unit::Bytes, &|e| {
            Values::of(e.peak_rss_bytes.as_ref())
        }),
        lower("tree", PEAK_TREE, "tree peak", Unit::Bytes, &|e| {
            Values::of(e.peak_tree_bytes.as_ref())
        }),
    ];
    let figures = [
        (
            OPERATIONS,
            "operations",
            "operations per CPU second",
            Better::Higher,
        ),
        (OVERHEAD, "overhead", "overhead", Better::Lower),
    ];
    for (key, id, title, better) in figures {
        if sheet.is_figure(key) {
            let of = |e: &EntrantResult| Values::of(e.metrics.get(key));
            let measure = lower(id, key, title, Unit::Number, &of);
            all.push(Measure { better, ..measure });
        }
    }
    for (place, name) in sheet.metrics().into_iter().enumerate() {
        let known = sheet
            .result
            .options
            .metrics
            .iter()
            .find(|known| known.name == name);
        let of = |e: &EntrantResult| Values::of(e.metrics.get(&name));
        let id = format!("metric{}", place + 1);
        let measure = lower(&id, &name, &foreign::name(&name), Unit::Number, &of);
        let better = known.map_or(Better::Lower, |known| known.better);
        all.push(Measure { better, ..measure });
    }
    all.retain(|measure| measure.values.iter().any(Option::is_some));
    all
}
