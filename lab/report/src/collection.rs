//! Text and Markdown of collections. A sweep has its own form; suites, experiments, searches and
//! checks of replays share another, with tables and the verdicts on claims.

mod claims;

use std::collections::BTreeSet;

use heapdrome_schema::{
    Collection, Member, MisuseRun, Purpose, RaceResult, Role, Scale, Status, Table,
};

use claims::ORDER;
pub(crate) use claims::{Kind, claims};

use crate::conclusion::{self, Conclusion};
use crate::foreign;
use crate::markdown::{self, Markdown};
use crate::prose;
use crate::reproduce;
use crate::sheet::why_out;
use crate::survival;
use crate::sweep::{sweep_markdown, sweep_text};
use crate::table::Column;
use crate::terminal::{Page, Terminal};
use crate::words;
use crate::{Exporter, ReportError};

/// Writes a sweep with its races and figures, or another collection with its tables and claims.
impl Exporter<Collection> for Terminal {
    fn export(&self, collection: &Collection) -> Result<Vec<u8>, ReportError> {
        let text = match collection.scale() {
            Some(scale) => suite_text(collection, scale, *self),
            None => sweep_text(collection, *self),
        };
        Ok(text.into_bytes())
    }
}

/// Writes a sweep with its races and figures, or another collection with its tables and claims.
impl Exporter<Collection> for Markdown {
    fn export(&self, collection: &Collection) -> Result<Vec<u8>, ReportError> {
        let text = match collection.scale() {
            Some(scale) => suite_markdown(collection, scale),
            None => sweep_markdown(collection),
        };
        Ok(text.into_bytes())
    }
}

fn suite_text(collection: &Collection, scale: Scale, terminal: Terminal) -> String {
    let mut page = Page::new(terminal);
    page.heading(&headline(collection, scale));
    for table in &collection.tables {
        page.heading(&textwrap::fill(&title(table), terminal.width.max(40)));
        let mut columns = columns(table, 32).into_iter();
        if let Some(names) = columns.next() {
            page.blocks(&names, &columns.collect::<Vec<_>>());
        }
        page.list(
            "Notes",
            table.notes.iter().map(|note| foreign::line(note)).collect(),
        );
    }
    for kind in Kind::of(collection) {
        page.section(kind.heading(), &kind.tally(&collection.claims));
        for holds in ORDER {
            let of = kind.own(&collection.claims);
            let of = of.into_iter().filter(|one| one.holds == holds);
            let lines = of.map(|claim| {
                let because = format!("{} ({})", foreign::line(&claim.because), claim.source);
                vec![foreign::line(&claim.claim), because]
            });
            page.list(&kind.capital(holds), lines.collect());
        }
    }
    match checked(collection) {
        Some(sentence) => page.section("Conclusion", &sentence),
        None => page.list("Conclusions", conclusions(collection)),
    }
    page.list("Not raced", absent(collection));
    page.list("Not counted", not_counted(collection));
    page.list("Factor", factors(collection));
    page.list("Remarks", prose::remarks_of_collection(collection));
    page.section("Machine", &prose::machine(&collection.machine));
    page.command("Run it again", &reproduce::collection_line(collection));
    page.text.trim_start().to_owned()
}

fn suite_markdown(collection: &Collection, scale: Scale) -> String {
    let mut page = markdown::Page(String::new());
    page.paragraph(&format!(
        "# {}",
        markdown::escaped(&headline(collection, scale))
    ));
    page.labelled("Machine", &prose::machine(&collection.machine));
    page.labelled("Started", &foreign::line(&collection.started));
    page.paragraph("Run it again:");
    page.code(&reproduce::collection_line(collection).join(" "));
    page.list("Remarks", &prose::remarks_of_collection(collection));
    page.list("Not raced", &absent(collection));
    page.list("Not counted", &flat(not_counted(collection)));
    for kind in Kind::of(collection) {
        page.paragraph(&format!("## {}", kind.heading()));
        page.paragraph(&markdown::escaped(&kind.tally(&collection.claims)));
        if !collection.claims.is_empty() {
            page.table(&claims(collection, kind));
        }
    }
    page.paragraph("## Tables");
    for table in &collection.tables {
        page.paragraph(&format!("### {}", markdown::escaped(&title(table))));
        page.table(&columns(table, usize::MAX));
        let notes = table.notes.iter().map(|note| foreign::line(note));
        page.list("Notes", &notes.collect::<Vec<_>>());
    }
    if !collection.races.is_empty() {
        page.paragraph("## Races");
        page.table(&races(collection));
        match checked(collection) {
            Some(sentence) => page.labelled("Conclusion", &sentence),
            None => page.list("Conclusions", &conclusions(collection)),
        }
    }
    page.0
}

/// Maximum length of a command or a name in a headline, in characters.
const LONGEST_COMMAND: usize = 60;

pub(crate) fn headline(collection: &Collection, scale: Scale) -> String {
    let scale = match scale {
        Scale::Quick => "quick form",
        Scale::Usual => "usual form",
        Scale::Published => "published counts",
    };
    let name = foreign::line(&collection.name);
    if collection.fidelity().is_some() {
        return foreign::shorten(&words::capital(&name), LONGEST_COMMAND);
    }
    if let Purpose::Survival { .. } = collection.purpose {
        let command = collection.asked.iter().skip_while(|word| *word != "--");
        let command: Vec<String> = command.skip(1).cloned().collect();
        let command = foreign::shorten(&reproduce::for_the_eye(&command), LONGEST_COMMAND);
        return format!("Least memory for {command}");
    }
    match speaks_of_a_document(collection) || !collection.misuse().is_empty() {
        true => format!("Suite {name}, {scale}"),
        false => format!("{name}, {scale}"),
    }
}

/// Returns whether the collection tests claims or targets, or has races other than the check of a
/// replay. Other collections, such as the tables of an experiment, refer to no document.
pub(crate) fn speaks_of_a_document(collection: &Collection) -> bool {
    !Kind::of(collection).is_empty()
}

/// Returns the title of a table. The title of a published table names its source.
pub(crate) fn title(table: &Table) -> String {
    let title = foreign::line(&table.title);
    match &table.published {
        None => title,
        Some(source) => format!(
            "{title}, as published, not measured here ({})",
            foreign::line(source)
        ),
    }
}

/// Returns sentences on the allocators that need the least memory; `None` if the collection has no
/// search for memory limits.
pub(crate) fn survived(collection: &Collection) -> Option<String> {
    let searches = collection.searches();
    if searches.is_empty() {
        return None;
    }
    let remarks = survival::needs_least(searches);
    Some(match remarks.is_empty() {
        true => {
            "A search for the smallest memory limit of one allocator; the table shows the result."
                .to_owned()
        }
        false => {
            let remarks = remarks.iter().map(|remark| foreign::line(remark));
            let sentences = remarks.map(|remark| format!("{}.", words::capital(&remark)));
            sentences.collect::<Vec<_>>().join(" ")
        }
    })
}

/// Returns a sentence on the outcome of a check of a replay; `None` for a collection without such a
/// check.
pub(crate) fn checked(collection: &Collection) -> Option<String> {
    let fidelity = collection.fidelity()?;
    let misses = fidelity.misses();
    let misses: Vec<_> = misses.map(|one| one.property.name().to_owned()).collect();
    Some(match misses.as_slice() {
        [] => conclusion::agreement(fidelity).unwrap_or_else(|| {
            "Nothing could be compared: no difference between entrants was shown.".to_owned()
        }),
        misses => format!(
            "The replay misses its program in {}: treat verdicts on that with doubt.",
            words::listed(misses)
        ),
    })
}

/// Returns a sentence with the number of kinds of misuse and the number of allocators.
pub(crate) fn misused(collection: &Collection) -> String {
    let distinct = |name: fn(&MisuseRun) -> &str| {
        let names: BTreeSet<&str> = collection.misuse().iter().map(name).collect();
        names.len()
    };
    format!(
        "Misuse of {} under {}; the first table counts the outcomes.",
        words::count(distinct(|run| &run.kind) as u64, "kind"),
        words::count(distinct(|run| &run.allocator) as u64, "allocator")
    )
}

/// Heads of columns that contain bars or words instead of figures.
const NO_FIGURES: [&str; 4] = ["plot", "command", "document", OLD_DOCUMENT];

/// Head of the column of documents in results of earlier versions.
const OLD_DOCUMENT: &str = "told in";

/// Returns the columns of a table. Names, bars and words are aligned left, figures right. Names are
/// shortened to `width` characters.
pub(crate) fn columns(table: &Table, width: usize) -> Vec<Column> {
    let cells = |place: usize| -> Vec<String> {
        let cell = |row: &Vec<String>| row.get(place).map(|text| foreign::line(text));
        table
            .rows
            .iter()
            .map(|row| cell(row).unwrap_or_default())
            .collect()
    };
    let column = |(place, head): (usize, &String)| match place {
        0 => {
            let short = |name: String| foreign::shorten(&name, width);
            Column::text(
                foreign::line(head),
                cells(0).into_iter().map(short).collect(),
            )
        }
        place if NO_FIGURES.contains(&head.as_str()) => {
            Column::text(foreign::line(head), cells(place))
        }
        place => Column::figures(foreign::line(head), cells(place)),
    };
    table.heads.iter().enumerate().map(column).collect()
}

/// Lists the entrants that did not race, grouped by reason.
pub(crate) fn absent(collection: &Collection) -> Vec<String> {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for one in &collection.absent {
        let name = foreign::line(&one.name);
        match told.iter_mut().find(|(reason, _)| *reason == one.reason) {
            Some((_, names)) => names.push(name),
            None => told.push((one.reason.as_str(), vec![name])),
        }
    }
    let line = |(reason, names): &(&str, Vec<String>)| {
        format!("{}: {}", names.join(", "), foreign::line(reason))
    };
    told.iter().map(line).collect()
}

/// Lists the entrants that raced but have no valid row. If an entrant has the same reason in
/// several races, the reason appears once.
pub(crate) fn not_counted(collection: &Collection) -> Vec<Vec<String>> {
    let mut told = Folded::default();
    for race in &collection.races {
        let out = race.result.entrants.iter();
        for row in out.filter(|row| row.status != Status::Ok) {
            told.add((foreign::name(&row.allocator), why_out(row)), place(race));
        }
    }
    let lines = told.0.into_iter().map(|((name, why), places)| {
        let (headline, details) = why;
        let first = format!("{name} in {}: {headline}", words::listed(&places));
        std::iter::once(first).chain(details).collect()
    });
    lines.collect()
}

/// Statements on several races. Each is stored once, with the places to which it applies.
struct Folded<T>(Vec<(T, Vec<String>)>);

impl<T> Default for Folded<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Folded<T> {
    fn add(&mut self, said: T, place: String) {
        match self.0.iter_mut().find(|(known, _)| *known == said) {
            Some((_, places)) => places.push(place),
            None => self.0.push((said, vec![place])),
        }
    }
}

fn flat(entries: Vec<Vec<String>>) -> Vec<String> {
    entries.into_iter().map(|lines| lines.join("; ")).collect()
}

/// Formats the ratio of the published setting's work to the work of the runs, for each cell with a
/// known ratio.
pub(crate) fn factors(collection: &Collection) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for race in &collection.races {
        let line = format!("{}: {}", foreign::line(&race.cell), factor(race));
        if race.factor.is_some() && !told.contains(&line) {
            told.push(line);
        }
    }
    told
}

fn factor(race: &Member) -> String {
    match race.factor {
        None => words::NONE.to_owned(),
        Some(factor) if factor >= 10.0 => {
            format!("the published form does {factor:.0} times as much work")
        }
        Some(factor) => format!("the published form does {factor:.1} times as much work"),
    }
}

/// Returns the conclusions of the races. Identical conclusions appear once, with the places of all
/// their races.
fn conclusions(collection: &Collection) -> Vec<String> {
    let mut told = Folded::default();
    for race in &collection.races {
        told.add(Conclusion::of(&race.result).to_string(), place(race));
    }
    let lines = told.0.into_iter();
    lines
        .map(|(said, places)| format!("{}: {said}", words::listed(&places)))
        .collect()
}

pub(crate) fn races(collection: &Collection) -> Vec<Column> {
    let column = |head: &str, tell: &dyn Fn(&Member) -> String| {
        Column::text(head, collection.races.iter().map(tell).collect())
    };
    vec![
        column("race", &place),
        column("parameters", &|race| {
            let words = race.parameters.join(" ");
            foreign::line(&format!("{} {words}", race.workload))
        }),
        column("rounds", &|race| rounds(&race.result)),
        column("processors", &|race| {
            let list: Vec<_> = race.processors.iter().map(usize::to_string).collect();
            match list.as_slice() {
                [] => "all".to_owned(),
                list => list.join(","),
            }
        }),
        column("factor", &factor),
        column("proven", &|race| proven(&race.result)),
    ]
}

/// Formats the place of a race in its collection: the cell, and the swept value if there is one.
pub(crate) fn place(race: &Member) -> String {
    let cell = foreign::line(&race.cell);
    match race.swept {
        Some(value) => format!("{cell} at {value}"),
        None => cell,
    }
}

/// Formats the number of rounds of a race. If decided entrants left early, formats the minimum and
/// the maximum.
fn rounds(result: &RaceResult) -> String {
    let decided = result.entrants.iter().filter_map(|row| row.decided_after);
    match decided.min() {
        Some(least) if least < result.rounds => format!("{least} to {}", result.rounds),
        _ => result.rounds.to_string(),
    }
}

/// Formats the number of valid rows with a proof and the number of all valid rows, such as `3 of 4
/// rows`. The twin does not count.
fn proven(result: &RaceResult) -> String {
    let counts = result.entrants.iter();
    let counts: Vec<_> = counts
        .filter(|row| row.status == Status::Ok && row.role != Role::Twin)
        .collect();
    let proven = counts.iter().filter(|row| row.proof.is_some()).count();
    format!("{proven} of {} rows", counts.len())
}
