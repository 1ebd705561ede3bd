//! Contents of a data set: an index of categories and entries, and the details of each entry.
//!
//! The types resemble those of a client of a media service: many short strings, some long ones,
//! options that are mostly set, and nested maps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Index of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// URL with which the URLs of all items begin.
    pub(crate) base: String,
    /// Categories by their number.
    pub(crate) categories: BTreeMap<u32, Category>,
    /// Entries by their number.
    pub(crate) entries: BTreeMap<u64, Entry>,
}

/// Group of entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) parent: Option<u32>,
    pub(crate) language: Option<String>,
}

/// Index record of an entry.
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    pub(crate) director: Option<String>,
    pub(crate) trailer: Option<String>,
    /// Chapters by their number.
    pub(crate) chapters: BTreeMap<u16, Chapter>,
}

/// Group of items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chapter {
    pub(crate) name: String,
    pub(crate) overview: Option<String>,
    pub(crate) cover: Option<String>,
    /// Items by their number in the chapter.
    pub(crate) items: BTreeMap<u32, Item>,
}

/// Item that gets a name and a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) title: String,
    pub(crate) extension: String,
    pub(crate) added: String,
    pub(crate) source: Option<String>,
    pub(crate) info: Option<Box<ItemInfo>>,
}

/// Metadata of an item.
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

/// Audio or video track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Track {
    pub(crate) codec: String,
    pub(crate) profile: Option<String>,
    pub(crate) bits_per_second: u32,
    pub(crate) tags: BTreeMap<String, String>,
}

/// Details of some entries, by the entries' numbers: the contents of one block of a file.
pub(crate) type Details = BTreeMap<u64, Detail>;
