//! Sweeps: one race for each combination of parameter values, and the change of each figure across
//! the races.

mod verdict;

use heapdrome_schema::{Collection, Comparison, EntrantResult, Member, Role, Series, Status, WALL};

use crate::conclusion::Conclusion;
use crate::entrant::versus;
use crate::foreign;
use crate::markdown;
use crate::prose;
use crate::reproduce;
use crate::scaling;
use crate::sheet::Sheet;
use crate::table::Column;
use crate::terminal::{self, Page, Terminal};
use crate::words::{self, NONE};
pub(crate) use verdict::verdict;

/// A figure that is followed across the races.
pub(crate) struct Followed {
    /// Name of the figure in the result.
    name: &'static str,
    /// Heading of the figure's table.
    heading: &'static str,
    /// Function that formats the baseline's value.
    tell: fn(Option<&Series>) -> String,
    /// Function that extracts the figure from a row.
    of: fn(&EntrantResult) -> Option<&Series>,
}

pub(crate) const FOLLOWED: [Followed; 3] = [
    Followed {
        name: WALL,
        heading: "Wall time (less is better)",
        tell: words::seconds,
        of: |row| row.wall_s.as_ref(),
    },
    Followed {
        name: "operations_per_cpu_s",
        heading: "Operations per CPU second (more is better)",
        tell: words::number,
        of: |row| row.metrics.get("operations_per_cpu_s"),
    },
    Followed {
        name: "overhead",
        heading: "Overhead: peak resident over peak requested (less is better)",
        tell: words::number,
        of: |row| row.metrics.get("overhead"),
    },
];

/// Formats the sweep for a terminal: each race with its table and conclusion, then one table for
/// each figure.
pub(crate) fn sweep_text(collection: &Collection, terminal: Terminal) -> String {
    let mut page = Page::new(terminal);
    for race in &collection.races {
        let rounds = words::count(u64::from(race.result.rounds), "round");
        let sheet = Sheet::new(&race.result);
        page.title(&race.result, &format!("{}, after {rounds}", race.cell));
        page.main_table(&sheet);
        page.bars(&sheet);
        page.memory(&sheet);
        page.section("Conclusion", &Conclusion::drawn(&sheet).to_string());
        let out = sheet.out.iter().map(|out| terminal::not_counted(out));
        page.list("Not counted", out.collect());
        page.list("Notes", terminal::numbered(&sheet));
        page.list("Remarks", prose::remarks_of_race(&race.result));
        page.text.push('\n');
    }
    for figure in &FOLLOWED {
        if let Some((names, columns)) = summary(collection, figure, 24) {
            page.heading(&heading(collection, figure));
            page.blocks(&names, &columns);
        }
    }
    for table in scaling::tables(collection, 24) {
        page.heading(&table.heading);
        page.blocks(&table.names, &table.columns);
    }
    page.section("Over the sweep", &verdict(collection));
    page.list("Notes", scaling::notes(collection));
    if let Some(first) = collection.races.first() {
        page.proof(&Sheet::new(&first.result));
    }
    page.list("Processors", placements(collection));
    page.list("Remarks", prose::remarks_of_collection(collection));
    page.section("Machine", &prose::machine(&collection.machine));
    page.command("Run it again", &reproduce::collection_line(collection));
    page.text
}

/// Formats the sweep as Markdown: one table for each figure, then the full output of each race.
pub(crate) fn sweep_markdown(collection: &Collection) -> String {
    let mut page = markdown::Page(String::new());
    page.paragraph(&format!("## {}", markdown::escaped(&title(collection))));
    page.labelled("Over the sweep", &verdict(collection));
    for figure in &FOLLOWED {
        if let Some((names, columns)) = summary(collection, figure, usize::MAX) {
            page.paragraph(&format!(
                "#### {}",
                markdown::escaped(&heading(collection, figure))
            ));
            let columns: Vec<_> = std::iter::once(names).chain(columns).collect();
            page.table(&columns);
        }
    }
    for table in scaling::tables(collection, usize::MAX) {
        page.paragraph(&format!("#### {}", markdown::escaped(&table.heading)));
        let columns: Vec<_> = std::iter::once(table.names).chain(table.columns).collect();
        page.table(&columns);
    }
    page.list("Notes", &scaling::notes(collection));
    page.list("Processors", &placements(collection));
    page.list("Remarks", &prose::remarks_of_collection(collection));
    page.labelled("Machine", &prose::machine(&collection.machine));
    for race in &collection.races {
        let rounds = words::count(u64::from(race.result.rounds), "round");
        page.paragraph(&format!(
            "### {}, over {rounds}",
            markdown::escaped(&race.cell)
        ));
        page.race(&race.result);
    }
    page.paragraph("Run the sweep again:");
    page.code(&reproduce::collection_line(collection).join(" "));
    page.0
}

/// Formats the title, such as `rptest, sweep threads`.
pub(crate) fn title(collection: &Collection) -> String {
    let workload = collection.races.first().map(|race| race.workload.as_str());
    let workload = foreign::line(workload.unwrap_or("nothing"));
    format!("{workload}, {}", foreign::line(&collection.name))
}

pub(crate) fn heading(collection: &Collection, figure: &Followed) -> String {
    let baseline = collection.races.first().map(|race| &race.result.baseline);
    let baseline = baseline.map_or_else(String::new, |name| foreign::name(name));
    format!("{}, ratio to {baseline} with its interval", figure.heading)
}

/// Returns a table of a figure: every allocator in every race; `None` if no valid row has the
/// figure. Names have at most `width` characters.
pub(crate) fn summary(
    collection: &Collection,
    figure: &Followed,
    width: usize,
) -> Option<(Column, Vec<Column>)> {
    let names = names(collection);
    let column = |race: &Member| {
        let cell = |name: &String| cell(race, figure, name);
        Column::figures(foreign::line(&race.cell), names.iter().map(cell).collect())
    };
    let columns: Vec<_> = collection.races.iter().map(column).collect();
    let shown = names.iter().map(|name| foreign::short_name(name, width));
    let heads = Column::text("allocator", shown.collect());
    let rows = collection
        .races
        .iter()
        .flat_map(|race| &race.result.entrants);
    let mut counting = rows.filter(|row| row.status == Status::Ok);
    counting
        .any(|row| (figure.of)(row).is_some())
        .then_some((heads, columns))
}

/// Returns the names of all entrants. The baseline comes first, the others in the order of their
/// first race.
fn names(collection: &Collection) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for role in [Role::Baseline, Role::Rival] {
        let races = collection.races.iter();
        let rows = races.flat_map(|race| &race.result.entrants);
        for row in rows.filter(|row| row.role == role) {
            if !names.contains(&row.allocator) {
                names.push(row.allocator.clone());
            }
        }
    }
    names
}

fn cell(race: &Member, figure: &Followed, name: &str) -> String {
    let rows = race.result.entrants.iter();
    let of_name = |row: &&EntrantResult| row.allocator == name && row.role != Role::Twin;
    let Some(row) = rows.into_iter().find(of_name) else {
        return NONE.to_owned();
    };
    match (row.status, row.role) {
        (Status::Ok, Role::Baseline) => (figure.tell)((figure.of)(row)),
        (Status::Ok, _) => versus(row, figure.name).map_or_else(|| NONE.to_owned(), ratio),
        (Status::NotServed, _) => "not served".to_owned(),
        (Status::Failed | Status::Timeout, _) => "failed".to_owned(),
    }
}

/// Formats a ratio with its interval, such as `0.83 (0.79 to 0.87)`.
fn ratio(compared: &Comparison) -> String {
    let Comparison {
        ratio, low, high, ..
    } = *compared;
    match (ratio.is_finite(), high.is_finite()) {
        (false, _) => NONE.to_owned(),
        (true, false) => format!("{ratio:.2} (?)"),
        (true, true) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
    }
}

/// Name of the parameter for the number of threads. A race is pinned to as many processors as it
/// has threads, if the machine has enough.
const THREADS: &str = "threads";

/// Returns a description of each race's processors.
pub(crate) fn placements(collection: &Collection) -> Vec<String> {
    let mut swept = collection
        .sweep()
        .into_iter()
        .flat_map(|sweep| &sweep.parameters);
    let by_threads = swept.any(|parameter| parameter.name == THREADS);
    let told = |race: &Member| {
        let list: Vec<_> = race.processors.iter().map(usize::to_string).collect();
        let cell = foreign::line(&race.cell);
        match list.as_slice() {
            [] if by_threads => {
                format!("{cell}: all; the machine has fewer processors than threads")
            }
            [] => format!("{cell}: all"),
            list => format!("{cell}: {}", list.join(",")),
        }
    };
    collection.races.iter().map(told).collect()
}
