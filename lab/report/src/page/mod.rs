//! HTML pages: the report of results, the page of a profile, and the index of a folder. Each is a
//! single file that opens from disk and sends no requests.
//!
//! The pages are made with maud. The templates are checked when heapdrome is compiled, and escape
//! all text of results. Every name, path and command of a result first passes through
//! [`crate::foreign`], as in the terminal. The content security policy of a page forbids all
//! requests, and all scripts except the page's own.

mod collection;
mod drawn;
mod index;
mod parts;
mod profile;
mod race;

use base64::Engine as _;
use heapdrome_schema::{Saved, compressed};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::ReportError;
use crate::foreign;
use crate::plot::{COLOURS, DARK_COLOURS, Looks};
use drawn::{Drawn, Packed};
pub use index::{Entry, index};
use parts::Place;
pub use profile::profile_page;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A result, with the name of its file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file. The reader can save the raw data under this name.
    pub name: String,
    /// The content of the file.
    pub saved: Saved,
}

/// Returns the complete page for these results, in this order.
///
/// # Errors
/// When a result cannot be written as JSON, or the data cannot be compressed.
pub fn page(sources: &[Source]) -> Result<Vec<u8>, ReportError> {
    let data = sources.iter().map(|source| packed(&source.saved));
    let data = data.collect::<Result<Vec<_>, _>>()?;
    let looks = Looks::of(sources.iter().map(|source| &source.saved));
    let packed = Packed::default();
    let drawn = Drawn::new(&looks, &packed);
    let sections = html! {
        @for (place, source) in sources.iter().enumerate() {
            (section(source, drawn, Place { number: place, level: level(sources) }))
        }
    };
    // All sections have been drawn, so all drawings that need packing are packed.
    let drawings = packed.text().map(|text| gzip(text.as_bytes()));
    let drawings = drawings.transpose()?;
    let body = html! {
        @if sources.len() > 1 { (contents(sources)) }
        main { (sections) }
        footer { (raw(sources)) }
        @for (place, data) in data.iter().enumerate() {
            (carried(&format!("data-{place}"), data))
        }
        @if let Some(drawings) = drawings { (carried("drawings", &drawings)) }
    };
    Ok(document(&title(sources), &body, Some(SCRIPT)))
}

/// Returns a complete HTML file with the style of all pages. Its policy allows only this style and
/// `script`.
fn document(title: &str, body: &Markup, script: Option<&str>) -> Vec<u8> {
    let style = format!("{STYLE}{}", colours());
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(&style, script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(&style)) }
            }
            body {
                (body)
                @if let Some(script) = script { script { (PreEscaped(script)) } }
            }
        }
    };
    let mut text = markup.into_string();
    text.push('\n');
    text.into_bytes()
}

/// Returns the level of a result's heading. With several results, level 1 is the heading of the
/// page.
fn level(sources: &[Source]) -> u8 {
    if sources.len() > 1 { 2 } else { 1 }
}

fn title(sources: &[Source]) -> String {
    match sources {
        [only] => format!("{}: heapdrome report", heading(&only.saved)),
        many => format!("{} results: heapdrome report", many.len()),
    }
}

/// Returns the heading of a result's section.
fn heading(saved: &Saved) -> String {
    match saved {
        Saved::Race(result) => race::heading(result),
        Saved::Collection(races) => collection::heading(races),
    }
}

fn section(source: &Source, drawn: Drawn<'_>, place: Place) -> Markup {
    match &source.saved {
        Saved::Race(result) => race::section(result, drawn, place, &format!("r{}-", place.number)),
        Saved::Collection(races) => collection::section(races, drawn, place),
    }
}

/// Returns an element with compressed data, which the page's script decompresses.
fn carried(name: &str, data: &str) -> Markup {
    html! { script type="application/gzip" id=(name) { (PreEscaped(data)) } }
}

fn contents(sources: &[Source]) -> Markup {
    html! {
        header { h1 { (sources.len()) " results" } }
        nav aria-label="Results" {
            ul {
                @for (place, source) in sources.iter().enumerate() {
                    li { a href={ "#result-" (place) } {
                        (foreign::line(&source.name)) ": " (heading(&source.saved))
                    } }
                }
            }
        }
    }
}

/// Returns the description of the raw data, and a button for each result that saves its data.
fn raw(sources: &[Source]) -> Markup {
    html! {
        h2 { "Raw data" }
        p {
            "This page contains every sample as JSON (gzip, base64), in the format that `heapdrome show` and "
            "`heapdrome report` read."
        }
        p class="controls" {
            @for (place, source) in sources.iter().enumerate() {
                button type="button" data-download={ "data-" (place) }
                    data-name=(foreign::line(&source.name)) {
                    "Save " (foreign::line(&source.name))
                }
            }
        }
    }
}

/// Returns a result as compressed JSON.
fn packed(saved: &Saved) -> Result<String, ReportError> {
    fn compact(value: &impl Serialize) -> Result<Vec<u8>, ReportError> {
        serde_json::to_vec(value).map_err(|error| ReportError::Json(error.to_string()))
    }
    let json = match saved {
        Saved::Race(result) => compact(result),
        Saved::Collection(races) => compact(races),
    }?;
    gzip(&json)
}

/// Compresses data with gzip, and encodes it as base64. Base64 contains no character that could end
/// the enclosing element.
fn gzip(bytes: &[u8]) -> Result<String, ReportError> {
    let bytes = compressed(bytes).map_err(|error| ReportError::Json(error.to_string()))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Returns the content security policy: the page fetches nothing, and only its own style and script
/// apply.
fn policy(style: &str, script: Option<&str>) -> String {
    let hash = |text: &str| {
        let digest = Sha256::digest(text.as_bytes());
        let digest = base64::engine::general_purpose::STANDARD.encode(digest);
        format!("'sha256-{digest}'")
    };
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(style),
        script.map_or_else(|| "'none'".to_owned(), hash)
    )
}

/// Returns the CSS rules for the classes of colours, on light and on dark pages.
fn colours() -> String {
    let rules = |colours: &[&str]| -> String {
        let rule = |(place, colour): (usize, &&str)| format!(".c{place}{{color:{colour}}}\n");
        colours.iter().enumerate().map(rule).collect()
    };
    format!(
        "{}@media screen and (prefers-color-scheme: dark){{\n{}}}\n",
        rules(&COLOURS),
        rules(&DARK_COLOURS)
    )
}
