//! `heapdrome workloads`: lists, explains and installs built-in workloads.

use std::fmt::Write as _;

use heapdrome_engine::workload::Workload;
use heapdrome_engine::workload::companion::Companion;
use heapdrome_programs::{Availability, Program, missing};
use heapdrome_schema::Bytes;
use heapdrome_workloads::{Description, FigureText, Parameter, Parameters, Preset};

use crate::arguments::{WorkloadsAction, WorkloadsArguments};
use crate::failure::Failure;
use crate::output;

/// Maximum width of an explanation's lines.
const WIDTH: usize = 100;

/// Runs the requested action on workloads.
///
/// # Errors
/// Returns an error if a name is unknown, something cannot be installed, or standard output cannot
/// be written.
pub fn workloads(arguments: &WorkloadsArguments) -> Result<(), Failure> {
    match arguments.action.as_ref().unwrap_or(&WorkloadsAction::List) {
        WorkloadsAction::List => output::print(list().as_bytes()),
        WorkloadsAction::Show { name } => {
            output::print(explained(Workload::find(name)?).as_bytes())
        }
        WorkloadsAction::Install { names } => install(names),
    }
}

fn summary(workload: Workload) -> &'static str {
    match workload {
        Workload::Own(description, _) => description.summary,
        Workload::Program(program) => &program.summary,
    }
}

fn list() -> String {
    let headings = [
        "Synthetic loads",
        "A load modelled on a service",
        "Programs with prepared loads",
    ];
    let mut text = String::new();
    for (kind, heading) in headings.iter().enumerate() {
        let all = Workload::all();
        let of_kind = all.iter().filter(|one| match one {
            Workload::Own(_, Companion::Runner) => kind == 0,
            Workload::Own(_, Companion::Catalog) => kind == 1,
            Workload::Program(_) => kind == 2,
        });
        let rows: Vec<_> = of_kind
            .map(|one| {
                [
                    one.name().to_owned(),
                    summary(*one).to_owned() + &lack(*one),
                ]
            })
            .collect();
        if !rows.is_empty() {
            let table = heapdrome_report::listing(["name", "description"], &rows, WIDTH);
            let _ = writeln!(text, "{heading}:\n\n{table}");
        }
    }
    text.push_str(
        "Explain one:  heapdrome workloads show NAME\n\
         Race one:     heapdrome race -w NAME [-- PARAMETERS]\n",
    );
    text
}

/// Returns the reason why a workload cannot be raced here; empty if it can.
fn lack(workload: Workload) -> String {
    match workload {
        Workload::Program(program) => match program.availability() {
            Availability::Available => String::new(),
            Availability::NotInstalled { packages, .. } => {
                format!(" (not installed: {})", packages.join(" "))
            }
        },
        Workload::Own(..) => String::new(),
    }
}

fn explained(workload: Workload) -> String {
    match workload {
        Workload::Own(description, _) => of_own(description),
        Workload::Program(program) => of_program(program),
    }
}

fn of_own(description: &'static Description) -> String {
    let mut page = Page::titled(description.name, description.summary);
    page.section("What it models", description.models);
    page.section("Origin", description.origin);
    let rows: Vec<_> = description.parameters.iter().map(parameter_row).collect();
    page.table(
        "Parameters, in the order of plain numbers",
        ["name", "default", "range", "meaning"],
        &rows,
    );
    let rows: Vec<_> = description.presets.iter().map(preset_row).collect();
    page.table(
        "Presets; the first is the default",
        ["name", "purpose"],
        &rows,
    );
    page.section("Meaning of its figures", description.meaning);
    let rows: Vec<_> = description.figures.iter().map(figure_row).collect();
    page.table("Figures", ["name", "better", "meaning"], &rows);
    page.section("What it does not show", description.silence);
    if let Ok(usual) = Parameters::parse(description, &[""; 0]) {
        let needed = Bytes((description.needs)(&usual));
        page.section(
            "What it needs",
            &format!("up to {needed} of memory with the defaults"),
        );
    }
    page.race(description.name);
    page.0
}

fn parameter_row(one: &Parameter) -> [String; 4] {
    let unit = if one.unit.is_empty() { "" } else { " " };
    [
        one.name.to_owned(),
        format!("{}{unit}{}", one.default, one.unit),
        format!("{} to {}", one.least, one.most),
        one.meaning.to_owned(),
    ]
}

fn preset_row(one: &Preset) -> [String; 2] {
    let values: Vec<_> = one
        .values
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let published = one
        .published
        .map_or_else(String::new, |by| format!(" (published: {by})"));
    let values = match values.as_slice() {
        [] => "the defaults".to_owned(),
        values => values.join(" "),
    };
    [
        one.name.to_owned(),
        format!("{}{published}: {values}", one.meaning),
    ]
}

fn figure_row(one: &FigureText) -> [String; 3] {
    let better = if one.more_is_better { "more" } else { "less" };
    [
        one.name.to_owned(),
        better.to_owned(),
        one.meaning.to_owned(),
    ]
}

fn of_program(program: &Program) -> String {
    let mut page = Page::titled(&program.name, &program.summary);
    page.section("What it models", &program.models);
    page.section("Origin", &program.origin);
    let parameter = |one: &heapdrome_programs::Parameter| {
        let values = match one.range {
            Some((least, most)) => format!("{least} to {most}"),
            None => one.choices.join(", "),
        };
        let quick = one.quick.clone().unwrap_or_default();
        [
            one.name.clone(),
            one.default.clone(),
            quick,
            values,
            one.meaning.clone(),
        ]
    };
    let rows: Vec<_> = program.parameters.iter().map(parameter).collect();
    page.table(
        "Parameters",
        ["name", "default", "quick", "values", "meaning"],
        &rows,
    );
    page.section("Meaning of its figures", &program.figures);
    page.section("What it does not show", &program.silence);
    let here = match program.availability() {
        Availability::Available => "installed".to_owned(),
        Availability::NotInstalled { reason, .. } => {
            format!(
                "{reason}; run: heapdrome workloads install {}",
                program.name
            )
        }
    };
    page.section("Here", &here);
    page.race(&program.name);
    page.0
}

/// Explanation of a workload, to which each method appends a part.
struct Page(String);

impl Page {
    fn titled(name: &str, summary: &str) -> Self {
        let mut page = Self(String::new());
        page.paragraph(&format!("{name}: {summary}"));
        page
    }

    fn paragraph(&mut self, text: &str) {
        self.0.push_str(&heapdrome_report::wrapped(text, WIDTH));
        self.0.push('\n');
    }

    fn section(&mut self, heading: &str, text: &str) {
        let _ = writeln!(self.0, "\n{heading}:");
        self.paragraph(text);
    }

    fn table<const N: usize>(&mut self, heading: &str, heads: [&str; N], rows: &[[String; N]]) {
        if !rows.is_empty() {
            let table = heapdrome_report::listing(heads, rows, WIDTH);
            let _ = write!(self.0, "\n{heading}:\n\n{table}");
        }
    }

    fn race(&mut self, name: &str) {
        let _ = writeln!(
            self.0,
            "\nRace it: heapdrome race -w {name} [-- PARAMETERS]"
        );
    }
}

/// Installs the missing packages of the named programs, or of all programs if none is named.
fn install(names: &[String]) -> Result<(), Failure> {
    let mut programs = Vec::new();
    for name in names {
        if let Workload::Program(program) = Workload::find(name)? {
            programs.push(program);
        }
    }
    if names.is_empty() {
        programs.extend(heapdrome_programs::list());
    }
    match missing(&programs) {
        None => output::print(b"Everything is installed.\n"),
        Some(missing) => missing
            .install(&mut |line| output::tell(line))
            .map_err(Failure::machine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_fit_and_every_preset_says_what_it_sets() {
        for workload in Workload::all() {
            let page = explained(workload);
            for line in page.lines().chain(list().lines()) {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
        let page = explained(Workload::find("malloctest").expect("it is there"));
        assert!(page.contains("published repeats: the defaults"), "{page}");
    }
}
