//! The default output of a race: all that a reader needs for a decision, on one screen.

use heapdrome_schema::{EntrantResult, RaceResult, Status};
use unicode_width::UnicodeWidthStr;

use crate::adopt;
use crate::conclusion::Conclusion;
use crate::foreign;
use crate::glance::{self, Shape};
use crate::notes;
use crate::prose;
use crate::reproduce;
use crate::sheet::{Sheet, why_out};
use crate::terminal::{Page, Terminal, filled};
use crate::words::{self, listed};
use crate::{Exporter, ReportError};

/// Maximum width of a line in characters, even on a wider terminal.
const WIDTH: usize = 80;
/// Number of output lines up to which remarks are added.
const LINES: usize = 32;
/// Maximum number of lines for one remark, or for one reason why entrants have no valid row.
const LINES_OF_ONE: usize = 2;
/// Maximum number of reasons that are printed for entrants without a valid row.
const REASONS: usize = 3;
/// Maximum number of details of one reason, such as lines of standard error. The last are the most
/// informative.
const QUOTED: usize = 3;

/// Brief output: the tables, the reason for the gain, the noise, the entrants without a valid row,
/// the proof, the remarks that fit, the command that uses the winner, and the conclusion.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    /// Width and colours of the text. Text is wrapped at 80 characters even on a wider terminal.
    pub terminal: Terminal,
    /// Argument of `heapdrome show` that finds this result: a file, or the name of a stored race.
    pub name: &'a str,
}

impl Exporter for Brief<'_> {
    fn export(&self, result: &RaceResult) -> Result<Vec<u8>, ReportError> {
        let sheet = Sheet::new(result);
        let conclusion = Conclusion::drawn(&sheet);
        let mut page = self.page();
        let rounds = words::count(u64::from(result.rounds), "round");
        let left = result
            .entrants
            .iter()
            .any(|row| row.decided_after.is_some());
        let most = if left { "up to " } else { "" };
        page.title(result, &format!("{most}{rounds}, fastest first"));
        glance(&mut page, &sheet, conclusion.recommended());
        page.metrics(&sheet);
        if let Some(reason) = conclusion.reason(&sheet) {
            page.fact("Why", &format!("{reason}."));
        }
        page.fact("Noise", &prose::noise_in_brief(result));
        page.facts("Not counted", &not_counted(&sheet, page.width));
        if let Some(proof) = proof(&sheet) {
            page.fact("Proof", &proof);
        }
        let end = self.end(&sheet, &conclusion);
        let taken = page.text.lines().count() + end.lines().count();
        let room = LINES.saturating_sub(taken);
        page.facts("Remark", &remarks(result, page.width, room));
        page.text.push_str(&end);
        Ok(page.text.into_bytes())
    }
}

impl Brief<'_> {
    fn page(&self) -> Page {
        Page::new(Terminal {
            width: self.terminal.width.min(WIDTH),
            ..self.terminal
        })
    }

    /// Returns the end of the output: the line that runs the command under the winner, the command
    /// that prints the full output, and the conclusion. The line is absent if there is no winner,
    /// or the race runs a workload.
    fn end(&self, sheet: &Sheet<'_>, conclusion: &Conclusion<'_>) -> String {
        let mut page = self.page();
        let name = reproduce::for_the_eye(&[self.name.to_owned()]);
        let mut more = format!("heapdrome show {name} --full");
        if let Some(taken) = conclusion.taken() {
            more = format!("{more}; to deploy it: heapdrome show {name} --deploy");
            if sheet.result.options.workload.is_none() {
                let room = page.width.saturating_sub("Use it: ".len());
                let line = use_line(sheet.result, taken, room);
                page.line(&format!("Use it: {line}"));
            }
        }
        page.fact("More", &more);
        page.section("Conclusion", &conclusion.to_string());
        page.text
    }
}

/// Adds the table and its legend, or a sentence if no entrant has a valid row. The table marks the
/// recommended entrant.
fn glance(page: &mut Page, sheet: &Sheet<'_>, recommended: Option<&EntrantResult>) {
    if sheet.rows.is_empty() {
        page.line("No allocator counts.");
        return;
    }
    let shapes = Shape::shrinking();
    let choices = shapes.iter();
    let choices = choices.map(|shape| glance::table(sheet, recommended, *shape));
    let choice = page.ranking(sheet, choices);
    let legend = glance::legend(sheet, recommended, shapes[choice]);
    let legend = page.paint.faint(&filled(&legend, page.width, ""));
    page.line(&legend);
}

/// Returns a sentence on the number of served processes, such as `each allocator served malloc in
/// 12 of 12 processes.` `None` if no entrant has a valid row.
fn proof(sheet: &Sheet<'_>) -> Option<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for row in &sheet.rows {
        let served = match &row.entrant.proof {
            Some(proof) => {
                let all = words::count(proof.processes, "process");
                format!(
                    "served malloc in {} of {all}",
                    words::grouped(proof.served_processes)
                )
            }
            None => "has no proof".to_owned(),
        };
        let name = foreign::name(&row.entrant.allocator);
        match groups.iter_mut().find(|(known, _)| *known == served) {
            Some((_, names)) => names.push(name),
            None => groups.push((served, vec![name])),
        }
    }
    match groups.as_slice() {
        [] => None,
        [(served, _)] => Some(format!("each allocator {served}.")),
        groups => {
            let told = groups
                .iter()
                .map(|(served, names)| format!("{} {served}", listed(names)));
            Some(format!("{}.", told.collect::<Vec<_>>().join("; ")))
        }
    }
}

/// Lists the entrants without a valid row, grouped by the reason. After the first [`REASONS`]
/// groups, lists the remaining entrants without their reasons.
fn not_counted(sheet: &Sheet<'_>, width: usize) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for entrant in &sheet.out {
        let reason = why_not(entrant);
        let name = foreign::name(&entrant.allocator);
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let room = LINES_OF_ONE * width.saturating_sub("Not counted: ".len());
    let reasons = groups.iter().take(REASONS);
    let reasons = reasons
        .map(|(reason, names)| foreign::shorten(&format!("{}: {reason}", listed(names)), room));
    let mut told: Vec<String> = reasons.collect();
    let rest = groups.iter().skip(REASONS);
    let rest: Vec<String> = rest.flat_map(|(_, names)| names.iter().cloned()).collect();
    if !rest.is_empty() {
        told.push(listed(&rest));
    }
    told
}

/// Returns the reason why an entrant has no valid row, in a few words.
fn why_not(entrant: &EntrantResult) -> String {
    let unserved = entrant.proof.iter().flat_map(|proof| &proof.unserved);
    if let (Status::NotServed, Some(first)) = (entrant.status, unserved.into_iter().next()) {
        let program = foreign::line(&first.program);
        let program = program.rsplit('/').next().unwrap_or_default();
        let reason = notes::reason(first.reason);
        let advice = foreign::line(&first.advice);
        return format!("not served: {program} ({reason}); {advice}");
    }
    let (headline, details) = why_out(entrant);
    match &details[details.len().saturating_sub(QUOTED)..] {
        [] => headline,
        last => format!("{headline}; {}", last.join("; ")),
    }
}

/// Returns the first remarks on the race, shortened to [`LINES_OF_ONE`] lines each, as far as they
/// fit into `room` lines. `--full` prints all remarks.
fn remarks(result: &RaceResult, width: usize, room: usize) -> Vec<String> {
    let longest = LINES_OF_ONE * width.saturating_sub("Remark: ".len());
    let mut left = room;
    let all = prose::remarks_of_race(result).into_iter();
    let told = all.map_while(|remark| {
        let remark = foreign::shorten(&remark, longest);
        let lines = filled(&format!("Remark: {remark}"), width, "");
        left = left.checked_sub(lines.lines().count())?;
        Some(remark)
    });
    told.collect()
}

/// Returns the shell line that runs the race's command under `entrant`. The line sets the entrant's
/// environment itself if it then fits into `room` characters and the library's path is not
/// redacted; otherwise it calls `heapdrome exec`. If neither fits, `COMMAND` replaces the command.
fn use_line(result: &RaceResult, entrant: &EntrantResult, room: usize) -> String {
    let library = entrant.library.as_ref();
    let library = library.map(|path| ("LD_PRELOAD".to_owned(), path.to_string_lossy().into()));
    let settings = adopt::settings(result, entrant).into_iter();
    let assigned = assigned(library.into_iter().chain(settings));
    let line = reproduce::for_the_eye(&result.command);
    // In a shared result, variables replace folders. No shell defines these variables, so a line
    // that sets the environment itself would not work.
    let is_redacted = entrant
        .library
        .as_ref()
        .is_some_and(|path| path.starts_with("$CACHE"));
    let plain = (!is_redacted).then(|| format!("{assigned}{line}"));
    let name = reproduce::for_the_eye(std::slice::from_ref(&entrant.allocator));
    // `heapdrome exec` sets the entrant's own variables, but not those of the race, so the line
    // sets the variables of the race.
    let given = self::assigned(result.options.environment.clone());
    let exec = format!("{given}heapdrome exec -a {name} --");
    let by_exec = format!("{exec} {line}");
    let fits = |line: &String| line.width() <= room;
    let mut found = plain.into_iter().chain([by_exec]).filter(fits);
    found.next().unwrap_or_else(|| format!("{exec} COMMAND"))
}

/// Formats variables for a single command in a shell, with a space after each.
fn assigned(variables: impl IntoIterator<Item = (String, String)>) -> String {
    let assigned = variables.into_iter().map(|(key, value)| {
        let value = reproduce::for_the_eye(std::slice::from_ref(&value));
        format!("{key}={value} ")
    });
    assigned.collect()
}
