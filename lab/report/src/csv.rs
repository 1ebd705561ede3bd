//! Results as CSV, with one sample on each line, and tables as CSV, for a spreadsheet or a
//! statistics package.

use heapdrome_schema::{Collection, EntrantResult, RaceResult, Role, Series, Status, Table};

use crate::{Exporter, ReportError};

/// The result as CSV in the long form: `allocator,role,status,round,metric,value`.
///
/// Rounds are counted from 1. `peak_tree_bytes` and `average_tree_bytes` are measured in untimed
/// runs, so their round is the number of the untimed run. A value that is not finite is an empty
/// field. For an entrant without samples, the last three fields are empty.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

/// Writes the races of a collection in the long form. The columns `cell` and `swept` come first.
impl Exporter<Collection> for Csv {
    fn export(&self, collection: &Collection) -> Result<Vec<u8>, ReportError> {
        let heads = ["cell", "swept"].into_iter().chain(HEADS);
        let heads: Vec<String> = heads.map(str::to_owned).collect();
        let races = collection.races.iter().flat_map(|race| {
            let swept = race.swept.map(|value| value.to_string());
            let first = [race.cell.clone(), swept.unwrap_or_default()];
            let records = race.result.entrants.iter().flat_map(records);
            records.map(move |record| first.clone().into_iter().chain(record).collect())
        });
        written(std::iter::once(heads).chain(races))
    }
}

/// Writes a table unchanged, with its heads as the first line.
impl Exporter<Table> for Csv {
    fn export(&self, table: &Table) -> Result<Vec<u8>, ReportError> {
        written(std::iter::once(&table.heads).chain(&table.rows))
    }
}

impl Exporter for Csv {
    fn export(&self, result: &RaceResult) -> Result<Vec<u8>, ReportError> {
        let heads = HEADS.map(str::to_owned);
        written(std::iter::once(heads).chain(result.entrants.iter().flat_map(records)))
    }
}

const HEADS: [&str; 6] = ["allocator", "role", "status", "round", "metric", "value"];

/// Writes the records, one on each line.
pub(crate) fn written<R>(records: impl Iterator<Item = R>) -> Result<Vec<u8>, ReportError>
where
    R: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for record in records {
        let written = writer.write_record(record);
        written.map_err(|error| ReportError::Csv(error.to_string()))?;
    }
    let bytes = writer.into_inner();
    bytes.map_err(|error| ReportError::Csv(error.to_string()))
}

/// Returns the records of an entrant: one for each sample, or a single one if there are no samples.
fn records(entrant: &EntrantResult) -> Vec<[String; 6]> {
    let of_sample = |[round, metric, value]: [String; 3]| {
        let role = role(entrant.role).to_owned();
        let status = status(entrant.status).to_owned();
        [
            entrant.allocator.clone(),
            role,
            status,
            round,
            metric,
            value,
        ]
    };
    samples(entrant).into_iter().map(of_sample).collect()
}

/// Returns the round, metric and value of each sample; one record of empty fields if there are no
/// samples.
fn samples(entrant: &EntrantResult) -> Vec<[String; 3]> {
    let mut all = Vec::new();
    for (metric, series) in series(entrant) {
        for (place, value) in series.samples.iter().enumerate() {
            let value = if value.is_finite() {
                value.to_string()
            } else {
                String::new()
            };
            all.push([(place + 1).to_string(), metric.to_owned(), value]);
        }
    }
    if all.is_empty() {
        all.push([const { String::new() }; 3]);
    }
    all
}

/// Returns the series of an entrant that the CSV contains, each with its name in the JSON.
fn series(entrant: &EntrantResult) -> Vec<(&str, &Series)> {
    let fixed = [
        ("wall_s", &entrant.wall_s),
        ("user_s", &entrant.user_s),
        ("system_s", &entrant.system_s),
        ("peak_rss_bytes", &entrant.peak_rss_bytes),
        ("peak_tree_bytes", &entrant.peak_tree_bytes),
        ("average_tree_bytes", &entrant.average_tree_bytes),
        ("minor_faults", &entrant.minor_faults),
        ("major_faults", &entrant.major_faults),
        ("voluntary_switches", &entrant.voluntary_switches),
        ("involuntary_switches", &entrant.involuntary_switches),
    ];
    let fixed = fixed
        .into_iter()
        .filter_map(|(name, series)| Some((name, series.as_ref()?)));
    let named = entrant.counters.iter().chain(&entrant.metrics);
    fixed
        .chain(named.map(|(name, series)| (name.as_str(), series)))
        .collect()
}

/// Returns the name of a role in the JSON.
fn role(role: Role) -> &'static str {
    match role {
        Role::Baseline => "baseline",
        Role::Twin => "twin",
        Role::Rival => "rival",
    }
}

/// Returns the name of a status in the JSON.
fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::NotServed => "not-served",
        Status::Timeout => "timeout",
    }
}
