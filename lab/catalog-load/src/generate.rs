//! Generation of a data set from its seed.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::model::{Category, Chapter, Detail, Details, Entry, Index, Item, ItemInfo, Track};
use crate::text::{Vocabulary, maybe, one_of};

/// Number of categories in a data set.
const CATEGORIES: u32 = 40;

/// Mean number of entries per unit of size.
const ENTRIES: f64 = 21.0;

/// Maximum relative deviation of a data set's number of entries from the mean.
const VARIATION: f64 = 0.05;

/// Mean number of items of an entry per unit of size. The number varies between half and one and a
/// half times the mean.
const ITEMS: u32 = 2;

/// Maximum number of chapters of an entry.
const CHAPTERS: u32 = 9;

/// Maximum number of entries whose details form one block.
const BLOCK: usize = 16;

/// Generator of one data set, block by block.
///
/// The number of entries and the number of items per entry both grow with the size. So the number
/// of bytes grows quadratically with the size.
pub(crate) struct Generator {
    random: ChaCha8Rng,
    vocabulary: Vocabulary,
    size: u32,
    next_item: u64,
    left: Vec<u64>,
}

impl Generator {
    /// Creates the generator of data set number `set`. Returns it with the index of the set.
    pub(crate) fn start(seed: u64, size: u32, set: u32) -> (Self, Index) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Each set has its own stream, so a set does not depend on the number of sets.
        random.set_stream(u64::from(set) + 1);
        let mut generator = Self {
            vocabulary: Vocabulary::draw(&mut random),
            random,
            size,
            next_item: (u64::from(set) + 1) << 36,
            left: Vec::new(),
        };
        let index = generator.index();
        // `block` takes entries from the end of this reversed list, so blocks come in the order of
        // entries.
        generator.left = index.entries.keys().rev().copied().collect();
        (generator, index)
    }

    /// Generates the details of the next few entries. Returns `None` after the last ones.
    pub(crate) fn block(&mut self) -> Option<Details> {
        if self.left.is_empty() {
            return None;
        }
        let rest = self.left.len().saturating_sub(BLOCK);
        let mut entries = self.left.split_off(rest);
        entries.reverse();
        Some(entries.into_iter().map(|id| (id, self.detail())).collect())
    }

    fn index(&mut self) -> Index {
        let vary = 1.0 + self.random.random_range(-VARIATION..=VARIATION);
        let entries = (f64::from(self.size) * ENTRIES * vary).round().max(1.0) as u64;
        let mut id = 1000;
        let mut drawn = BTreeMap::new();
        for _ in 0..entries {
            id += self.random.random_range(1..=40);
            drawn.insert(id, self.entry());
        }
        let host = self.vocabulary.word(&mut self.random).to_owned();
        let categories = (0..CATEGORIES).map(|number| (number, self.category()));
        Index {
            categories: categories.collect(),
            entries: drawn,
            base: format!("https://media.{host}.example:8443"),
        }
    }

    fn category(&mut self) -> Category {
        let (random, words) = (&mut self.random, &self.vocabulary);
        Category {
            name: words.title(random, 1, 3),
            parent: maybe(random, 30, |random| random.random_range(0..CATEGORIES)),
            language: maybe(random, 60, |random| {
                one_of(random, &["EN", "DE", "FR", "PT"])
            }),
        }
    }

    fn entry(&mut self) -> Entry {
        let (random, words) = (&mut self.random, &self.vocabulary);
        // The minimum of two draws makes some categories much larger than others.
        let category = random
            .random_range(0..CATEGORIES)
            .min(random.random_range(0..CATEGORIES));
        let (cast, backdrops) = (random.random_range(0..=12), random.random_range(0..=4));
        Entry {
            category,
            name: words.title(random, 1, 5),
            year: random.random_range(1950..=2025),
            kind: one_of(random, &["series", "course", "album"]),
            cover: maybe(random, 90, |random| words.picture(random)),
            plot: maybe(random, 80, |random| words.words(random, 10, 80)),
            cast: (0..cast).map(|_| words.person(random)).collect(),
            backdrops: (0..backdrops).map(|_| words.picture(random)).collect(),
            rating: maybe(random, 70, |random| random.random_range(0.0..10.0)),
            modified: random.random_range(1_400_000_000..1_750_000_000),
        }
    }

    fn detail(&mut self) -> Detail {
        let (least, most) = (self.size * ITEMS / 2, self.size * ITEMS * 3 / 2);
        let items = self.random.random_range(least..=most);
        let chapters = self.random.random_range(1..=CHAPTERS).min(items.max(1));
        let (random, words) = (&mut self.random, &self.vocabulary);
        let director = maybe(random, 60, |random| words.person(random));
        let trailer = maybe(random, 40, |random| words.picture(random));
        let of_chapter = |chapter| items / chapters + u32::from(chapter < items % chapters);
        let drawn =
            (0..chapters).map(|chapter| (chapter as u16 + 1, self.chapter(of_chapter(chapter))));
        Detail {
            chapters: drawn.collect(),
            director,
            trailer,
        }
    }

    fn chapter(&mut self, items: u32) -> Chapter {
        let (random, words) = (&mut self.random, &self.vocabulary);
        Chapter {
            name: words.title(random, 1, 3),
            overview: maybe(random, 50, |random| words.words(random, 10, 60)),
            cover: maybe(random, 80, |random| words.picture(random)),
            items: (1..=items).map(|number| (number, self.item())).collect(),
        }
    }

    fn item(&mut self) -> Item {
        let (random, words) = (&mut self.random, &self.vocabulary);
        self.next_item += random.random_range(1..=9);
        Item {
            id: self.next_item,
            title: words.title(random, 1, 6),
            extension: one_of(random, &["mp4", "mkv", "flac", "webm"]),
            added: random
                .random_range(1_400_000_000_u64..1_750_000_000)
                .to_string(),
            source: maybe(random, 20, |random| words.picture(random)),
            info: maybe(random, 90, |random| Box::new(info(random, words))),
        }
    }
}

fn info(random: &mut ChaCha8Rng, words: &Vocabulary) -> ItemInfo {
    let seconds = random.random_range(60..7200);
    let audio = random.random_range(1..=2);
    let subtitles = maybe(random, 35, |random| random.random_range(1..=3)).unwrap_or(0);
    let languages = ["ara", "deu", "eng", "fra", "jpn", "por", "spa", "zho"];
    ItemInfo {
        seconds,
        duration: format!(
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
        plot: maybe(random, 70, |random| words.words(random, 5, 50)),
        cover: maybe(random, 80, |random| words.picture(random)),
        rating: maybe(random, 50, |random| random.random_range(0.0..10.0)),
        video: maybe(random, 90, |random| {
            track(random, words, &["h264", "hevc", "av1"])
        }),
        audio: (0..audio)
            .map(|_| track(random, words, &["aac", "opus", "eac3"]))
            .collect(),
        subtitles: (0..subtitles)
            .map(|_| (one_of(random, &languages), words.picture(random)))
            .collect(),
    }
}

fn track(random: &mut ChaCha8Rng, words: &Vocabulary, codecs: &[&str]) -> Track {
    let mut tags = BTreeMap::new();
    if random.random_ratio(20, 100) {
        tags.insert(
            "language".to_owned(),
            one_of(random, &["eng", "deu", "fra"]),
        );
        tags.insert("handler_name".to_owned(), words.title(random, 1, 2));
    }
    Track {
        codec: one_of(random, codecs),
        profile: maybe(random, 50, |random| {
            one_of(random, &["Main", "High", "Main 10", "LC"])
        }),
        bits_per_second: random.random_range(64_000..20_000_000),
        tags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, size: u32, set: u32) -> (Index, Details) {
        let (mut generator, index) = Generator::start(seed, size, set);
        let mut details = Details::new();
        while let Some(block) = generator.block() {
            assert!(block.len() <= BLOCK);
            details.extend(block);
        }
        (index, details)
    }

    fn items(details: &Details) -> usize {
        let chapters = details.values().flat_map(|one| one.chapters.values());
        chapters.map(|chapter| chapter.items.len()).sum()
    }

    #[test]
    fn a_set_depends_on_seed_size_and_number_alone() {
        assert_eq!(draw(1, 3, 0), draw(1, 3, 0));
        assert_ne!(draw(1, 3, 0), draw(2, 3, 0));
        assert_ne!(draw(1, 3, 0), draw(1, 3, 1));
    }

    #[test]
    fn each_entry_has_its_details_and_its_category() {
        let (index, details) = draw(5, 4, 2);
        assert!(index.entries.keys().eq(details.keys()));
        let known = |entry: &Entry| index.categories.contains_key(&entry.category);
        assert!(index.entries.values().all(known));
        let mut ids: Vec<_> = details
            .values()
            .flat_map(|detail| detail.chapters.values())
            .flat_map(|chapter| chapter.items.values().map(|item| item.id))
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "an item's number is used twice");
    }

    #[test]
    fn bytes_and_items_grow_with_the_square_of_the_size() {
        let of = |size| {
            let sets = (0..3).map(|set| draw(1, size, set).1);
            let both = sets.map(|details| {
                let bytes = postcard::to_stdvec(&details).expect("serialised").len();
                (items(&details), bytes)
            });
            both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        };
        let (small, large) = (of(6), of(18));
        let ratio = |small: usize, large: usize| large as f64 / small as f64;
        let (items, bytes) = (ratio(small.0, large.0), ratio(small.1, large.1));
        assert!((8.3..9.7).contains(&items), "{items} instead of 9");
        // Data that exist once per chapter have a larger share in the smaller set, whose chapters
        // are short. The bytes therefore grow by less than the items.
        assert!((7.2..9.5).contains(&bytes), "{bytes} instead of 9");
        // There are 42 items per unit of size squared, and thus 420,000 at the default size.
        let per_unit = large.0 as f64 / (3.0 * 18.0 * 18.0);
        assert!((38.0..46.0).contains(&per_unit), "{per_unit}");
    }

    #[test]
    fn the_smallest_size_has_entries_and_items() {
        let (index, details) = draw(1, 1, 0);
        assert!(index.entries.len() >= 19 && items(&details) >= 19);
    }
}
