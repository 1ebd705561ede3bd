//! What a data set holds: an index of categories and entries, and the details of each entry.
//!
//! The types are those of a client of some media service, much as a real one has them: many short
//! strings, some long ones, options that are mostly there, and maps in maps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The index of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// The address below which everything is found.
    pub(crate) base: String,
    /// Categories by their number.
    pub(crate) categories: BTreeMap<u32, Category>,
    /// Entries by their number.
    pub(crate) entries: BTreeMap<u64, Entry>,
}

/// A group of entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) parent: Option<u32>,
    pub(crate) language: Option<String>,
}

/// What the index says of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) category: u32,
    pub(crate) name: String,
    pub(crate) year: u16,
    pub(crate) kind: String,
    pub(crate) cover: Option<String>,
    pub(crate) plot: Option<String>,
    pub(crate) cast: Vec<String>,
    pub(crate) backdrops: Vec<String>,
    pub(crate) rating: Option<f32>,
    pub(crate) modified: u64,
}

/// The details of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    pub(crate) director: Option<String>,
    pub(crate) trailer: Option<String>,
    /// Chapters by their number.
    pub(crate) chapters: BTreeMap<u16, Chapter>,
}

/// A run of items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chapter {
    pub(crate) name: String,
    pub(crate) overview: Option<String>,
    pub(crate) cover: Option<String>,
    /// Items by their number in the chapter.
    pub(crate) items: BTreeMap<u32, Item>,
}

/// What can be asked for: it gets a name and a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) title: String,
    pub(crate) extension: String,
    pub(crate) added: String,
    pub(crate) source: Option<String>,
    pub(crate) info: Option<Box<ItemInfo>>,
}

/// What is known of an item, if anything is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ItemInfo {
    pub(crate) seconds: u32,
    pub(crate) duration: String,
    pub(crate) plot: Option<String>,
    pub(crate) cover: Option<String>,
    pub(crate) rating: Option<f32>,
    pub(crate) video: Option<Track>,
    pub(crate) audio: Vec<Track>,
    pub(crate) subtitles: BTreeMap<String, String>,
}

/// A track of sound or pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Track {
    pub(crate) codec: String,
    pub(crate) profile: Option<String>,
    pub(crate) bits_per_second: u32,
    pub(crate) tags: BTreeMap<String, String>,
}

/// The details of some entries, by the entries' numbers: what one block of a file holds.
pub(crate) type Details = BTreeMap<u64, Detail>;
