//! The figures of plots. Each has the values of every entrant with a valid row.

use heapdrome_schema::{Better, Bytes, EntrantResult, Nanoseconds, PEAK_RSS, Role, Series, WALL};

use crate::entrant::{OPERATIONS, OVERHEAD, PEAK_TREE, cpu, versus};
use crate::foreign;
use crate::sheet::Sheet;
use crate::words;

/// The format of a figure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    Number,
}

impl Unit {
    /// Formats a value with its unit, as in the tables.
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
    /// Samples in the order of the rounds.
    pub(crate) samples: Vec<f64>,
    /// Positions of the outliers in `samples`.
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
}

/// An entrant's ratio to the baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) at: f64,
    /// Ends of the interval, if there is one.
    pub(crate) ends: Option<[f64; 2]>,
}

/// One figure, with the values of all entrants that have valid rows.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// Identifier, unique in a race and valid in a file's name.
    pub(crate) id: String,
    /// Key of the figure's comparisons.
    pub(crate) key: String,
    /// Name of the figure in a sentence.
    pub(crate) title: String,
    pub(crate) better: Better,
    pub(crate) unit: Unit,
    /// Values of the entrants, in the order of the ranking.
    pub(crate) values: Vec<Option<Values>>,
}

impl Measure {
    /// Returns the ratio of the entrant at this position in the ranking. If there is no comparison,
    /// returns the ratio of the medians, without an interval. Returns `None` if neither is known.
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

    /// Returns the sort key of the entrant at this position: its ratio, inverted if higher is
    /// better, so that smaller keys are better.
    pub(crate) fn sort_key(&self, sheet: &Sheet<'_>, place: usize) -> Option<f64> {
        let ratio = self.ratio(sheet, place)?.at;
        Some(match self.better {
            Better::Lower => ratio,
            Better::Higher => 1.0 / ratio,
        })
    }

    /// Returns the positions in the ranking, sorted by this figure, the best first. Entrants
    /// without the figure are last.
    pub(crate) fn order(&self, sheet: &Sheet<'_>) -> Vec<usize> {
        let key = |place: &usize| self.sort_key(sheet, *place).unwrap_or(f64::INFINITY);
        let mut places: Vec<usize> = (0..sheet.rows.len()).collect();
        places.sort_by(|a, b| key(a).total_cmp(&key(b)));
        places
    }

    fn baseline(&self, sheet: &Sheet<'_>) -> Option<&Values> {
        let is_baseline = |row: &crate::sheet::Row<'_>| row.entrant.role == Role::Baseline;
        self.values
            .get(sheet.rows.iter().position(is_baseline)?)?
            .as_ref()
    }

    /// Returns `lower is better` or `higher is better`.
    pub(crate) fn direction(&self) -> &'static str {
        words::direction(self.better)
    }
}

/// Function that extracts the values of a figure from an entrant.
type Take<'a> = &'a dyn Fn(&EntrantResult) -> Option<Values>;

/// Returns the figures that any entrant of a race has, beginning with wall time. A replay has only
/// the figures that its speed supports.
pub(crate) fn measures(sheet: &Sheet<'_>) -> Vec<Measure> {
    let mut all = common(sheet);
    all.extend(of_workload(sheet));
    all.extend(of_command(sheet));
    all.retain(|measure| sheet.supports(&measure.key));
    all.retain(|measure| measure.values.iter().any(Option::is_some));
    all
}

/// Returns a figure for which lower is better. `names` are its identifier, its key and its title.
fn lower(sheet: &Sheet<'_>, names: [&str; 3], unit: Unit, of: Take<'_>) -> Measure {
    let [id, key, title] = names.map(str::to_owned);
    Measure {
        id,
        key,
        title,
        better: Better::Lower,
        unit,
        values: sheet.rows.iter().map(|row| of(row.entrant)).collect(),
    }
}

/// Returns the figures that every command has.
fn common(sheet: &Sheet<'_>) -> Vec<Measure> {
    let figures: [([&str; 3], Unit, Take<'_>); 4] = [
        (["wall", WALL, "wall time"], Unit::Seconds, &|e| {
            Values::of(e.wall_s.as_ref())
        }),
        (["cpu", "cpu_s", "processor time"], Unit::Seconds, &|e| {
            Values::of(cpu(e).as_ref())
        }),
        (["memory", PEAK_RSS, "peak RSS"], Unit::Bytes, &|e| {
            Values::of(e.peak_rss_bytes.as_ref())
        }),
        (["tree", PEAK_TREE, "tree peak"], Unit::Bytes, &|e| {
            Values::of(e.peak_tree_bytes.as_ref())
        }),
    ];
    let measure = |(names, unit, of)| lower(sheet, names, unit, of);
    figures.map(measure).into()
}

/// Returns the workload's operations per CPU second and its overhead, if it reports them.
fn of_workload(sheet: &Sheet<'_>) -> Vec<Measure> {
    let operations = ["operations", OPERATIONS, "operations per CPU second"];
    let figures = [
        (operations, Better::Higher),
        (["overhead", OVERHEAD, "overhead"], Better::Lower),
    ];
    let known = figures
        .into_iter()
        .filter(|(names, _)| sheet.is_figure(names[1]));
    let measure = |(names, better): ([&str; 3], Better)| {
        let of = |e: &EntrantResult| Values::of(e.metrics.get(names[1]));
        Measure {
            better,
            ..lower(sheet, names, Unit::Number, &of)
        }
    };
    known.map(measure).collect()
}

/// Returns the metrics that the command printed.
fn of_command(sheet: &Sheet<'_>) -> Vec<Measure> {
    let metrics = &sheet.result.options.metrics;
    let measure = |(place, name): (usize, String)| {
        let known = metrics.iter().find(|known| known.name == name);
        let of = |e: &EntrantResult| Values::of(e.metrics.get(&name));
        let (id, title) = (format!("metric{}", place + 1), foreign::name(&name));
        Measure {
            better: known.map_or(Better::Lower, |known| known.better),
            ..lower(sheet, [&id, &name, &title], Unit::Number, &of)
        }
    };
    let names = sheet.metrics().into_iter();
    names.enumerate().map(measure).collect()
}
