//! The report: one HTML file that opens from disk, is self-contained and sends no requests.
//!
//! The page is made with maud, whose templates are checked when heapdrome is compiled and escape
//! all text. Every name, path and command passes through [`crate::foreign`] first, as in the
//! terminal. Its content security policy forbids every request, and every script except its own.

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

/// A result with the name of its file.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file's name, under which the raw data can be saved again.
    pub name: String,
    /// The content of the file.
    pub saved: Saved,
}

/// Returns the whole page for these results, in this order.
///
/// # Errors
/// When a value of a result has no JSON form.
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
    // All drawings that need packing have been packed by now.
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

/// Returns a whole HTML file with the style of all pages, and a policy that allows only this style
/// and this script.
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

/// Returns the level of a result's heading.
fn level(sources: &[Source]) -> u8 {
    if sources.len() > 1 { 2 } else { 1 }
}

fn title(sources: &[Source]) -> String {
    match sources {
        [only] => format!("{}: heapdrome report", heading(&only.saved)),
        many => format!("{} results: heapdrome report", many.len()),
    }
}

/// Returns the heading of a result.
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

/// Returns packed data that the page's script unpacks.
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

/// Returns the raw data with a description.
fn raw(sources: &[Source]) -> Markup {
    html! {
        h2 { "Raw data" }
        p {
            "Every sample behind this page is embedded in it as JSON (gzip, base64), as `heapdrome show` and "
            "`heapdrome report` read it."
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

/// Returns a result as packed JSON.
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

/// Compresses data and encodes it in characters that cannot end the enclosing element. The browser
/// can decompress it.
fn gzip(bytes: &[u8]) -> Result<String, ReportError> {
    let bytes = compressed(bytes).map_err(|error| ReportError::Json(error.to_string()))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Returns the policy: the page fetches nothing, and only its own style and script apply.
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

/// Returns the CSS rules for the colour of each entrant, on white and on dark.
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
