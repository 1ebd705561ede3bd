//! Ghostscript renders the pages of a PDF that it generated itself.

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const PAGES: &str = include_str!("../../data/loads/ghostscript.ps");

/// Options that suppress messages and prompts, end the run after the last file, and restrict file
/// access to the named files.
const PLAIN: [&str; 4] = ["-q", "-dSAFER", "-dBATCH", "-dNOPAUSE"];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let pages = format!("-dPAGES={}", request.values.word("pages"));
    let stamp = [PAGES, pages.as_str(), request.version(0)];
    let input = request.input(&stamp, on_event, &|folder| {
        write_file(&folder.join("pages.ps"), PAGES)?;
        request.generate(request.tool(0).as_ref(), &|command| {
            command
                .args(PLAIN)
                .args([&pages, "-sDEVICE=pdfwrite", "-o", "pages.pdf", "pages.ps"])
                .env("GS_OPTIONS", "")
                .current_dir(folder);
        })
    })?;
    let resolution = format!("-r{}", request.values.word("resolution"));
    let mut command = words(&[&request.tool(0)]);
    command.extend(words(&PLAIN));
    command.extend(words(&[
        "-sDEVICE=pgmraw",
        &resolution,
        "-dTextAlphaBits=4",
        "-dGraphicsAlphaBits=4",
        "-sOutputFile=%stdout",
        "pages.pdf",
    ]));
    let mut prepared = request.prepared(input, command);
    let nothing = ("GS_OPTIONS".to_owned(), String::new());
    prepared.environment = [nothing].into();
    Ok(prepared)
}
