//! Values in text files of the kernel.

/// File with the kernel's policy for transparent huge pages.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Returns the kernel's current mode of transparent huge pages: `always`, `madvise` or `never`.
/// `None` if the kernel does not report it.
pub fn huge_pages() -> Option<String> {
    let text = std::fs::read_to_string(HUGE_PAGES).ok()?;
    chosen(&text).map(str::to_owned)
}

/// Returns the word in brackets, as in `always [madvise] never`.
pub fn chosen(choices: &str) -> Option<&str> {
    let mut words = choices.split_whitespace();
    words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// Returns the number after `key` in a text of key-value lines. `key` is the whole first word,
/// with its colon if the file has one. `None` if no line has a number after `key`.
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == key)
            .then(|| words.next()?.parse().ok())
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_whole_word() {
        assert_eq!(keyed("anon_thp 5\nanon 7\n", "anon"), Some(7));
        assert_eq!(keyed("MemAvailable:   7 kB\n", "MemAvailable:"), Some(7));
        assert_eq!(keyed("rss 5\n", "total_rss"), None);
    }

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("[always]"), Some("always"));
        assert_eq!(chosen("always never"), None);
    }
}
