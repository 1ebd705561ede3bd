//! Joins the index of a data set with the details of its entries, and formats a name and a URL for
//! every item.

use std::collections::BTreeMap;
use std::thread::ThreadId;

use smol::future::yield_now;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::{Category, Detail, Details, Entry, Index, Item};

/// Data set as read from its file.
#[derive(Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) index: Index,
    pub(crate) details: Details,
}

/// Data set whose details are joined with its index. Categories are in the order of their headings.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) shelves: BTreeMap<(String, u32), Shelf>,
    /// Number of entries with details but no index entry, or the reverse.
    pub(crate) unmatched: u64,
}

/// Category with its entries in the order of their names. It records the thread that completed it.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) number: u32,
    pub(crate) category: Option<Category>,
    pub(crate) volumes: BTreeMap<(String, u64), Volume>,
    pub(crate) maker: ThreadId,
}

/// Entry with its details, and the records of its items.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) entry: Entry,
    pub(crate) detail: Detail,
    pub(crate) records: BTreeMap<(u16, u32), Record>,
}

/// Formatted name and URL of an item.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) url: String,
}

/// Number of records and their checksum. Tallies may be added in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) checksum: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.checksum = self.checksum.wrapping_add(other.checksum);
    }
}

impl Shelf {
    /// Counts the records, and hashes their names and URLs as they are in memory.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.volumes.values().for_each(|one| tally.add(one.tally()));
        tally
    }

    /// Returns the number of mismatches: entries of another category or of none, plus for each
    /// entry the difference between its numbers of items and records. The number is 0 unless memory
    /// has changed.
    pub(crate) fn strays(&self) -> u64 {
        let named = self.category.is_some();
        let stray = |volume: &Volume| {
            let items = volume.detail.chapters.values().map(|one| one.items.len());
            let missing = items.sum::<usize>().abs_diff(volume.records.len()) as u64;
            missing + u64::from(!named || volume.entry.category != self.number)
        };
        self.volumes.values().map(stray).sum()
    }
}

impl Volume {
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for record in self.records.values() {
            let name = xxh3_64_with_seed(record.name.as_bytes(), record.id);
            let url = xxh3_64_with_seed(record.url.as_bytes(), !record.id);
            tally.add(Tally {
                records: 1,
                checksum: name.wrapping_add(url),
            });
        }
        tally
    }
}

impl Joined {
    /// Returns the tally of all categories.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.shelves
            .values()
            .for_each(|shelf| tally.add(shelf.tally()));
        tally
    }
}

/// Joins a data set. Yields after every entry, so that the work moves between the threads of the
/// executor.
pub(crate) async fn join(loaded: Loaded) -> Joined {
    let Loaded { index, mut details } = loaded;
    let Index {
        base,
        mut categories,
        entries,
    } = index;
    let mut joined = Joined {
        shelves: BTreeMap::new(),
        unmatched: 0,
    };
    for (number, entries) in by_category(entries) {
        let category = categories.remove(&number);
        let title = category.as_ref().map_or_else(String::new, heading);
        let mut volumes = BTreeMap::new();
        for (id, entry) in entries {
            match details.remove(&id) {
                Some(detail) => {
                    let key = (entry.name.to_lowercase(), id);
                    volumes.insert(key, volume(&base, &title, entry, detail));
                }
                None => joined.unmatched += 1,
            }
            yield_now().await;
        }
        let shelf = Shelf {
            number,
            category,
            volumes,
            maker: std::thread::current().id(),
        };
        joined.shelves.insert((title, number), shelf);
    }
    joined.unmatched += details.len() as u64;
    joined
}

/// Groups entries by the number of their category.
fn by_category(entries: BTreeMap<u64, Entry>) -> BTreeMap<u32, Vec<(u64, Entry)>> {
    let mut sorted: BTreeMap<u32, Vec<(u64, Entry)>> = BTreeMap::new();
    for (id, entry) in entries {
        let category = entry.category;
        sorted.entry(category).or_default().push((id, entry));
    }
    sorted
}

/// Returns the contribution of some entries' details to the tally of their data set.
pub(crate) fn tally_of_details(index: &Index, details: Details) -> Tally {
    let mut tally = Tally::default();
    for (id, detail) in details {
        let Some(entry) = index.entries.get(&id) else {
            continue;
        };
        let category = index.categories.get(&entry.category);
        let title = category.map_or_else(String::new, heading);
        tally.add(volume(&index.base, &title, entry.clone(), detail).tally());
    }
    tally
}

/// Returns the heading of a category: its language, if it has one, and its name.
fn heading(category: &Category) -> String {
    match &category.language {
        Some(language) => format!("{language} | {}", category.name),
        None => category.name.clone(),
    }
}

/// Joins an entry with its details, and formats the records of its items.
fn volume(base: &str, category: &str, entry: Entry, detail: Detail) -> Volume {
    let prefix = format!("{base}/{}/{}", entry.kind, slug(&entry.name));
    let mut records = BTreeMap::new();
    for (chapter, content) in &detail.chapters {
        for (number, item) in &content.items {
            let place = format!("S{chapter:02}E{number:02}");
            let record = record(category, &entry, &prefix, &place, item);
            records.insert((*chapter, *number), record);
        }
    }
    Volume {
        entry,
        detail,
        records,
    }
}

/// Formats the record of an item, with temporary strings as in typical code.
fn record(category: &str, entry: &Entry, prefix: &str, place: &str, item: &Item) -> Record {
    let mut name = format!(
        "{category} / {} ({}) - {place} - {}",
        entry.name, entry.year, item.title
    );
    if let Some(info) = &item.info {
        let codecs: Vec<String> = info
            .video
            .iter()
            .chain(&info.audio)
            .map(|track| match &track.profile {
                Some(profile) => format!("{} {profile}", track.codec.to_uppercase()),
                None => track.codec.to_uppercase(),
            })
            .collect();
        name.push_str(&format!(" [{}, {}]", info.duration, codecs.join(" + ")));
    }
    let file = format!("{}-{}", place.to_lowercase(), slug(&item.title));
    let mut url = format!("{prefix}/{}/{file}.{}", item.id, item.extension);
    if let Some(source) = &item.source {
        url.push_str(&format!("?from={}", source.replace('/', "%2F")));
    }
    Record {
        id: item.id,
        name,
        url,
    }
}

/// Converts a name to the form that it has in a URL.
fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words: Vec<String> = lower
        .split(' ')
        .map(|word| word.replace('ö', "oe").replace('é', "e"))
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Generator;
    use crate::model::{Chapter, ItemInfo, Track};
    use smol::future::block_on;

    fn loaded() -> Loaded {
        let (mut generator, index) = Generator::start(3, 3, 1);
        let mut details = Details::new();
        while let Some(block) = generator.block() {
            details.extend(block);
        }
        Loaded { index, details }
    }

    #[test]
    fn every_item_gets_one_record_and_nothing_is_left() {
        let Loaded { index, details } = loaded();
        let chapters = details.values().flat_map(|one| one.chapters.values());
        let items: usize = chapters.map(|chapter| chapter.items.len()).sum();
        let entries = index.entries.len();
        let expected = tally_of_details(&index, details.clone());
        let joined = block_on(join(Loaded { index, details }));
        let volumes: usize = joined.shelves.values().map(|one| one.volumes.len()).sum();
        assert_eq!((joined.unmatched, volumes), (0, entries));
        assert_eq!(joined.tally().records, items as u64);
        assert_eq!(joined.tally(), expected);
        assert!(joined.shelves.values().all(|shelf| shelf.strays() == 0));
    }

    #[test]
    fn what_does_not_belong_together_is_seen() {
        let mut one = loaded();
        let lost = *one.details.keys().next().expect("an entry");
        one.details.remove(&lost);
        assert_eq!(block_on(join(one)).unmatched, 1);
        let mut joined = block_on(join(loaded()));
        let before = joined.tally();
        let shelf = joined.shelves.values_mut().next().expect("a category");
        let volume = shelf.volumes.values_mut().next().expect("an entry");
        volume.entry.category += 1;
        assert_eq!(shelf.strays(), 1);
        let volume = shelf.volumes.values_mut().next().expect("an entry");
        let record = volume.records.values_mut().next().expect("an item");
        record.url.push('x');
        assert_ne!(joined.tally().checksum, before.checksum);
        assert_eq!(joined.tally().records, before.records);
    }

    fn item() -> Item {
        let track = |codec: &str, profile: Option<&str>| Track {
            codec: codec.to_owned(),
            profile: profile.map(str::to_owned),
            bits_per_second: 1,
            tags: BTreeMap::new(),
        };
        Item {
            id: 77,
            title: "Löwe Und Né".to_owned(),
            extension: "mkv".to_owned(),
            added: "1".to_owned(),
            source: Some("/a/b.jpg".to_owned()),
            info: Some(Box::new(ItemInfo {
                seconds: 61,
                duration: "00:01:01".to_owned(),
                plot: None,
                cover: None,
                rating: None,
                video: Some(track("h264", Some("High"))),
                audio: vec![track("aac", None)],
                subtitles: BTreeMap::new(),
            })),
        }
    }

    #[test]
    fn names_and_urls_read_as_they_should() {
        let chapter = Chapter {
            name: "One".to_owned(),
            overview: None,
            cover: None,
            items: BTreeMap::from([(4, item())]),
        };
        let detail = Detail {
            director: None,
            trailer: None,
            chapters: BTreeMap::from([(12, chapter)]),
        };
        let entry = Entry {
            category: 1,
            name: "Some Show".to_owned(),
            year: 1999,
            kind: "series".to_owned(),
            cover: None,
            plot: None,
            cast: Vec::new(),
            backdrops: Vec::new(),
            rating: None,
            modified: 0,
        };
        let made = volume("https://x.example", "DE | Drama", entry, detail);
        let record = &made.records[&(12, 4)];
        assert_eq!(
            record.name,
            "DE | Drama / Some Show (1999) - S12E04 - Löwe Und Né [00:01:01, H264 High + AAC]"
        );
        assert_eq!(
            record.url,
            "https://x.example/series/some-show/77/s12e04-loewe-und-ne.mkv?from=%2Fa%2Fb.jpg"
        );
    }
}
