//! Words, sentences and addresses that are drawn from a seeded generator.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

const SYLLABLES: [&str; 48] = [
    "ba", "ben", "bor", "ca", "cel", "cor", "da", "del", "dor", "el", "en", "fa", "fin", "for",
    "ga", "gil", "gor", "ha", "hel", "il", "is", "ja", "ka", "kel", "la", "len", "lö", "ma", "men",
    "mor", "na", "nel", "né", "or", "pa", "pel", "ra", "ren", "ri", "sa", "sel", "so", "ta", "ter",
    "to", "va", "ven", "zu",
];

/// Number of words in a vocabulary. Some words occur more than once.
const WORDS: usize = 4096;

/// The words of a data set.
pub(crate) struct Vocabulary(Vec<String>);

impl Vocabulary {
    pub(crate) fn draw(random: &mut ChaCha8Rng) -> Self {
        let mut word = || {
            let syllables = random.random_range(1..=4);
            (0..syllables)
                .map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())])
                .collect()
        };
        Self((0..WORDS).map(|_| word()).collect())
    }

    pub(crate) fn word(&self, random: &mut ChaCha8Rng) -> &str {
        &self.0[random.random_range(0..WORDS)]
    }

    /// Draws `least` to `most` words.
    pub(crate) fn words(&self, random: &mut ChaCha8Rng, least: u32, most: u32) -> String {
        let count = random.random_range(least..=most);
        let mut text = String::new();
        for place in 0..count {
            if place > 0 {
                text.push(' ');
            }
            text.push_str(self.word(random));
        }
        text
    }

    /// Draws a title: a few capitalised words.
    pub(crate) fn title(&self, random: &mut ChaCha8Rng, least: u32, most: u32) -> String {
        let words = self.words(random, least, most);
        let mut text = String::with_capacity(words.len());
        let mut start = true;
        for letter in words.chars() {
            match start {
                true => text.extend(letter.to_uppercase()),
                false => text.push(letter),
            }
            start = letter == ' ';
        }
        text
    }

    pub(crate) fn person(&self, random: &mut ChaCha8Rng) -> String {
        self.title(random, 2, 3)
    }

    /// Draws the address of a picture.
    pub(crate) fn picture(&self, random: &mut ChaCha8Rng) -> String {
        let (width, name) = (random.random_range(1..=9) * 100, random.random::<u64>());
        format!("/{}/w{width}/{name:016x}.jpg", self.word(random))
    }
}

/// Draws a value with a probability of `percent`. Returns `None` otherwise.
pub(crate) fn maybe<T>(
    random: &mut ChaCha8Rng,
    percent: u32,
    draw: impl FnOnce(&mut ChaCha8Rng) -> T,
) -> Option<T> {
    random.random_ratio(percent, 100).then(|| draw(random))
}

/// Draws one of the strings.
pub(crate) fn one_of(random: &mut ChaCha8Rng, from: &[&str]) -> String {
    from[random.random_range(0..from.len())].to_owned()
}
