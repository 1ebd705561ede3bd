//! Tests that `docs/trace-format.md` agrees with the code.

use crate::encode::{
    Encoder, FAIL, FREE, FREE_FOREIGN, FREE_NULL, FREES, NEW_FREE, NEW_SHAPE, RESIZE, SHAPES,
    STACK, THREAD,
};
use crate::layout::{CHUNK_HEADER_BYTES, HEADER_BYTES, MAGIC, MAX_CONTENT, MAX_LENGTH, header};
use crate::{Architecture, Operation, Stack, Step, Time, VERSION};

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-format.md");
    std::fs::read_to_string(page).expect("the page is there")
}

/// Returns the beginning of a row in the page's table of codes. `word` begins the row's
/// description.
fn row(first: u8, last: u8, word: &str) -> String {
    match first == last {
        true => format!("| 0x{first:02x} | {word}"),
        false => format!("| 0x{first:02x} to 0x{last:02x} | {word}"),
    }
}

#[test]
fn the_page_has_the_numbers_of_the_code() {
    let page = page();
    let magic = MAGIC.map(|byte| format!("{byte:02x}")).join(" ");
    let last_free = FREE + FREES as u8 - 1;
    for sentence in [
        format!("# The format of a trace: version {VERSION}\n"),
        format!("| 8 | 2 | version of the format: {VERSION} |"),
        format!("a line feed: {magic} |"),
        format!("A header of {HEADER_BYTES} bytes, then chunks"),
        format!("checksum of the {} bytes before |", HEADER_BYTES - 4),
        format!("Each chunk is a header of {CHUNK_HEADER_BYTES} bytes"),
        format!("checksum of the {} bytes before |", CHUNK_HEADER_BYTES - 4),
        format!("has at most {MAX_CONTENT} bytes"),
        format!("either length above {MAX_LENGTH} bytes"),
        format!("A step is {} nanoseconds.", Time::STEP),
        format!("an empty table of {SHAPES} places"),
        format!("in a table of {FREES} places: `0x{NEW_FREE:02x}` adds one"),
        row(0, SHAPES as u8 - 1, "makes a block by the shape"),
        row(NEW_SHAPE, NEW_SHAPE, "makes a block by a new shape"),
        row(NEW_FREE, NEW_FREE, "frees a block by a new"),
        row(RESIZE, RESIZE, "resizes"),
        row(FREE_NULL, FREE_NULL, "frees a null"),
        row(FAIL, FAIL, "fails"),
        row(FREE_FOREIGN, FREE_FOREIGN, "frees a block that the trace"),
        row(THREAD, THREAD, "the calls from here on"),
        row(STACK, FREE - 1, "the stack of the call"),
        format!("at most {} frames", Stack::MAX_FRAMES),
        row(FREE, last_free, "frees a block by the freeing"),
        row(last_free + 1, u8::MAX, "not used"),
    ] {
        // A sentence may be broken into lines anywhere.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&page).contains(&words(&sentence)), "{sentence}");
    }
    let number = |architecture| header(architecture)[10];
    let (x86_64, aarch64) = (number(Architecture::X86_64), number(Architecture::Aarch64));
    assert!(page.contains(&format!(
        ": {x86_64} x86-64, {aarch64} aarch64, 0 unknown |"
    )));
}

#[test]
fn the_page_names_every_field_of_a_record() {
    let page = page();
    let (_, page) = page
        .split_once("\n## A chunk of records\n")
        .expect("its heading");
    let page = page.split("\n## ").next().expect("a section");
    let records = crate::records::one_of_each();
    assert_eq!(records.len(), page.matches("\n| `").count());
    for record in records {
        let value = serde_json::to_value(&record).expect("a record is JSON");
        let (name, fields) = value
            .as_object()
            .and_then(|it| it.iter().next())
            .expect("one");
        let start = format!("| `{name}` |");
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("{start}"));
        for field in fields.as_object().expect("fields").keys() {
            assert!(line.contains(&format!("`{field}`")), "{name}: {field}");
        }
    }
}

#[test]
fn the_example_is_what_is_written() {
    let mut encoder = Encoder::new(0);
    let mut add = |time, operation| {
        let time = Time(time);
        let step = Step {
            thread: 0,
            time,
            operation,
            stack: None,
        };
        encoder.add(step).expect("in order");
    };
    add(
        160,
        Operation::Make {
            function: 0,
            size: 100,
            alignment: 0,
        },
    );
    add(
        320,
        Operation::Free {
            function: 1,
            block: 0,
        },
    );
    let page = page();
    let (_, example) = page.split_once("\n## An example\n").expect("its heading");
    let lines = example.lines().filter_map(|line| line.strip_prefix("    "));
    let words = lines.flat_map(|line| line.split_whitespace().take_while(|word| word.len() == 2));
    let bytes: Result<Vec<_>, _> = words.map(|word| u8::from_str_radix(word, 16)).collect();
    assert_eq!(encoder.bytes(), bytes.expect("hexadecimal"));
    assert!(example.contains(&format!("is {} bytes:", encoder.bytes().len())));
}
