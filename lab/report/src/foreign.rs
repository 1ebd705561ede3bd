//! Text from other programs: names, paths, standard error. It may contain anything.

use unicode_width::UnicodeWidthStr;

/// Returns `text` on one line, without control characters and terminal escape sequences.
pub(crate) fn line(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in lines(text) {
        words.extend(part.split_whitespace().map(str::to_owned));
    }
    words.join(" ")
}

/// Returns the lines of `text` that are not empty, without control characters and escape sequences.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let plain = without_escapes(text);
    let parts = plain.split(['\n', '\r']).map(|part| {
        let spaced = part.chars().map(|c| if c == '\t' { ' ' } else { c });
        spaced
            .filter(|c| is_printable(*c))
            .collect::<String>()
            .trim_end()
            .to_owned()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns whether a terminal shows `c` at the cursor and does nothing else.
pub(crate) fn is_printable(c: char) -> bool {
    let turns_text_around = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    // These are not characters, and XML forbids them.
    let is_none = matches!(c, '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !turns_text_around && !is_none && !matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns `text` without escape sequences of ECMA-48, such as `ESC [ 31 m` and `ESC ] ... BEL`.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => skip_sequence(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                Some(' '..='/') => skip_short(&mut rest),
                _ => {}
            },
            '\u{9b}' => skip_sequence(&mut rest),
            _ => plain.push(c),
        }
    }
    plain
}

/// Skips characters up to and including the first one that ends the sequence, and returns this
/// character. The end of a line always ends the sequence, and is not skipped. Returns `None` if the
/// line or the text ends first.
fn skip_until(rest: &mut std::str::Chars<'_>, ends: impl Fn(char) -> bool) -> Option<char> {
    let mut ahead = rest.clone();
    while let Some(c) = ahead.next() {
        if c == '\n' {
            return None;
        }
        *rest = ahead.clone();
        if ends(c) {
            return Some(c);
        }
    }
    None
}

/// Skips a control sequence up to and including its final character.
fn skip_sequence(rest: &mut std::str::Chars<'_>) {
    skip_until(rest, |c| ('@'..='~').contains(&c));
}

/// Skips the rest of an escape sequence with intermediate characters, such as `ESC ( B`.
fn skip_short(rest: &mut std::str::Chars<'_>) {
    skip_until(rest, |c| ('0'..='~').contains(&c));
}

/// Skips a control string and its terminator: BEL, ST, or `ESC \`. Any other ESC also ends the
/// string.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    let end = skip_until(rest, |c| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}'));
    if end == Some('\u{1b}') && rest.as_str().starts_with('\\') {
        rest.next();
    }
}

/// Shortens `text` to at most `width` characters. An ellipsis marks the cut. Cuts between two
/// words, unless a long word would leave more than half of the width empty.
#[must_use]
pub fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let ends = text.char_indices().map(|(place, _)| place);
    let fits = |end: &usize| text[..*end].width() < width;
    let end = ends.take_while(fits).last().unwrap_or(0);
    let (kept, rest) = text.split_at(end);
    let last_word = kept.rfind(' ').filter(|space| {
        let is_within_word = !rest.starts_with(' ');
        is_within_word && kept[..*space].width() >= width / 2
    });
    let mut short = kept[..last_word.unwrap_or(end)].trim_end().to_owned();
    if width > 0 {
        short.push('…');
    }
    short
}

/// Shortens a name to at most `width` characters. A path that is too long keeps its end.
pub(crate) fn short_name(name: &str, width: usize) -> String {
    let name = line(name);
    if name.width() <= width || !name.contains('/') {
        return shorten(&name, width);
    }
    let turned: String = name.chars().rev().collect();
    shorten(&turned, width).chars().rev().collect()
}

/// Returns a name as it appears in a sentence.
pub(crate) fn name(name: &str) -> String {
    short_name(name, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_controls_are_taken_out() {
        assert_eq!(line("\u{1b}[31mred\u{1b}[0m\u{7} x"), "red x");
        assert_eq!(line("a\u{1b}]0;title\u{7}b"), "ab");
        assert_eq!(line("a\u{1b}]8;;http://x\u{1b}\\b"), "ab");
        assert_eq!(line("a\u{202e}b\u{9b}2Jc"), "abc");
        assert_eq!(line("two\nlines\r\nhere"), "two lines here");
    }

    #[test]
    fn an_unfinished_sequence_hides_no_other_line() {
        assert_eq!(lines("\u{1b}]0;never ended\nsecond"), ["second"]);
        assert_eq!(lines("\u{1b}[12\nsecond"), ["second"]);
        assert_eq!(lines("\u{1b}"), [""; 0]);
    }

    #[test]
    fn text_is_cut_by_columns_and_not_by_bytes() {
        assert_eq!(shorten("mimalloc", 8), "mimalloc");
        assert_eq!(shorten("mimalloc3", 8), "mimallo…");
        assert_eq!(shorten("日本語日本語", 5), "日本…");
        assert_eq!(shorten("x", 0), "");
    }

    #[test]
    fn text_is_cut_between_words() {
        assert_eq!(shorten("takes more memory", 17), "takes more memory");
        assert_eq!(shorten("takes more memory", 14), "takes more…");
        assert_eq!(shorten("takes more memory", 11), "takes more…");
        assert_eq!(shorten("takes more memory", 10), "takes…");
        assert_eq!(shorten("a averyverylongword", 12), "a averyvery…");
    }

    #[test]
    fn a_long_path_keeps_its_last_part() {
        assert_eq!(
            short_name("/a/very/long/folder/mine.so", 12),
            "…der/mine.so"
        );
        assert_eq!(short_name("libverylongname.so", 12), "libverylong…");
    }
}
