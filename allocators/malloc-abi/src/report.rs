//! Reports of an allocator's statistics, for people and for programs. They are written into memory
//! of the caller, without any allocation.

use core::ffi::CStr;

use heapdrome_pages::system::{append_to_file, write_error};
use heapdrome_pages::{Access, Linux, Pages};

use crate::contract::keeping_errno;
use crate::{MallocAbi, Statistics};

/// Maximum number of bytes of a report, including a terminating NUL.
const LARGEST: usize = 64 << 10;
/// Width of a column of text, in characters.
const COLUMN: usize = 13;

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Lines and columns, for people.
    #[default]
    Text,
    /// One JSON object on one line.
    Json,
    /// XML, as `malloc_info` writes it.
    Xml,
}

/// Description of a table in a report.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Name of the table in JSON and XML, such as `classes`.
    pub name: &'a str,
    /// Name of the XML element of a row, such as `class`.
    pub row: &'a str,
    /// Names of the columns.
    pub columns: &'a [&'a str],
}

/// Report under construction. Text that does not fit is cut off.
#[derive(Debug)]
pub struct Report<'a> {
    form: Form,
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Report<'a> {
    /// Creates an empty report in `bytes`, which has at least one byte.
    #[must_use]
    pub fn new(form: Form, bytes: &'a mut [u8]) -> Self {
        bytes[0] = 0;
        Self {
            form,
            bytes,
            length: 0,
        }
    }

    /// Returns the text so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns the text so far as a C string.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(self.bytes).unwrap_or_default()
    }

    /// Begins the report with the allocator's name.
    #[cold]
    pub fn begin(&mut self, allocator: &str) {
        let (before, after) = match self.form {
            Form::Text => ("", "\n"),
            Form::Json => ("{\"allocator\":\"", "\""),
            Form::Xml => ("<malloc version=\"", "\">\n"),
        };
        self.pushes(&[before, allocator, after]);
    }

    /// Adds one value.
    #[cold]
    pub fn value(&mut self, name: &str, value: usize) {
        let (before, between, after) = match self.form {
            Form::Text => ("  ", " = ", "\n"),
            Form::Json => (",\"", "\":", ""),
            Form::Xml => ("<", " value=\"", "\"/>\n"),
        };
        self.pushes(&[before, name, between]);
        self.number(value, 0);
        self.push(after);
    }

    /// Adds the values that every allocator reports.
    #[cold]
    pub fn statistics(&mut self, statistics: &Statistics) {
        self.value("live", statistics.live);
        self.value("live_mapped", statistics.live_mapped);
        self.value("mapped_blocks", statistics.mapped_blocks);
        self.value("free", statistics.free);
        self.value("releasable", statistics.releasable);
        self.value("reserved", statistics.reserved);
        self.value("peak_reserved", statistics.peak_reserved);
    }

    /// Begins a table.
    #[cold]
    pub fn begin_table(&mut self, table: &Table<'_>) {
        match self.form {
            Form::Text => {
                for column in table.columns {
                    self.pad(column.len());
                    self.push(column);
                }
                self.push("\n");
            }
            Form::Json => self.pushes(&[",\"", table.name, "\":["]),
            Form::Xml => self.pushes(&["<", table.name, ">\n"]),
        }
    }

    /// Adds a row with a value for every column.
    #[cold]
    pub fn row(&mut self, table: &Table<'_>, values: &[usize]) {
        match self.form {
            Form::Text => {}
            Form::Json if self.as_bytes().ends_with(b"[") => self.push("{"),
            Form::Json => self.push(",{"),
            Form::Xml => self.pushes(&["<", table.row]),
        }
        for (index, (&column, &value)) in table.columns.iter().zip(values).enumerate() {
            match self.form {
                Form::Text => self.number(value, COLUMN),
                Form::Json => {
                    self.pushes(&[if index == 0 { "\"" } else { ",\"" }, column, "\":"]);
                    self.number(value, 0);
                }
                Form::Xml => {
                    self.pushes(&[" ", column, "=\""]);
                    self.number(value, 0);
                    self.push("\"");
                }
            }
        }
        self.push(match self.form {
            Form::Text => "\n",
            Form::Json => "}",
            Form::Xml => "/>\n",
        });
    }

    /// Ends a table.
    #[cold]
    pub fn end_table(&mut self, table: &Table<'_>) {
        match self.form {
            Form::Text => {}
            Form::Json => self.push("]"),
            Form::Xml => self.pushes(&["</", table.name, ">\n"]),
        }
    }

    /// Ends the report.
    #[cold]
    pub fn end(&mut self) {
        self.push(match self.form {
            Form::Text => "",
            Form::Json => "}\n",
            Form::Xml => "</malloc>\n",
        });
    }

    fn pushes(&mut self, texts: &[&str]) {
        for text in texts {
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        // The last byte is reserved for the NUL of the C string.
        let room = self.bytes.len() - 1 - self.length;
        let text = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.length..][..text.len()].copy_from_slice(text);
        self.length += text.len();
        self.bytes[self.length] = 0;
    }

    #[cold]
    fn pad(&mut self, length: usize) {
        for _ in length..COLUMN {
            self.push(" ");
        }
    }

    /// Writes a decimal number, padded on the left with spaces to `width`, at most 20.
    #[cold]
    fn number(&mut self, mut number: usize, width: usize) {
        let mut digits = [b' '; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        first = first.min(digits.len() - width.min(digits.len()));
        self.push(core::str::from_utf8(&digits[first..]).unwrap_or_default());
    }
}

/// Writes the allocator's report into newly mapped pages, and passes it to `body`. Returns `None`
/// if the system refuses the pages.
pub fn with_report<A: MallocAbi, T>(form: Form, body: impl FnOnce(&Report<'_>) -> T) -> Option<T> {
    let pages = Linux.reserve(LARGEST, 1, Access::ReadWrite)?;
    // SAFETY: the pages are new and zero, and only this function uses them.
    let bytes = unsafe { core::slice::from_raw_parts_mut(pages.as_ptr(), LARGEST) };
    let mut report = Report::new(form, bytes);
    keeping_errno(|| A::report(&mut report));
    let result = body(&report);
    // SAFETY: the pages were reserved above with this size, and the report in them is no longer
    // used.
    unsafe { Linux.release(pages, LARGEST) };
    Some(result)
}

/// Appends a report to a file. Writes the report to standard error if `file` is `None` or cannot be
/// written completely.
#[cold]
pub fn write_report<A: MallocAbi>(form: Form, file: Option<&CStr>) {
    with_report::<A, _>(form, |report| {
        let text = report.as_bytes();
        if !file.is_some_and(|file| append_to_file(file, text)) {
            write_error(text);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table<'static> = Table {
        name: "classes",
        row: "class",
        columns: &["size", "live"],
    };

    fn written(form: Form, room: usize) -> std::string::String {
        let mut bytes = std::vec![b'?'; room];
        let mut report = Report::new(form, &mut bytes);
        report.begin("name");
        report.value("cached", 907);
        report.begin_table(&TABLE);
        report.row(&TABLE, &[16, 0]);
        report.row(&TABLE, &[32, usize::MAX]);
        report.end_table(&TABLE);
        report.end();
        assert_eq!(report.as_bytes(), report.as_c_str().to_bytes());
        std::string::String::from_utf8_lossy(report.as_bytes()).into_owned()
    }

    #[test]
    fn every_form_says_the_same() {
        let text = written(Form::Text, 1000);
        let expected = "name\n  cached = 907\n         size         live\n           16            0\n           3218446744073709551615\n";
        assert_eq!(text, expected);
        let json = r#"{"allocator":"name","cached":907,"classes":[{"size":16,"live":0},{"size":32,"live":18446744073709551615}]}"#;
        assert_eq!(written(Form::Json, 1000).trim_end(), json);
        let xml = "<malloc version=\"name\">\n<cached value=\"907\"/>\n<classes>\n<class size=\"16\" live=\"0\"/>\n<class size=\"32\" live=\"18446744073709551615\"/>\n</classes>\n</malloc>\n";
        assert_eq!(written(Form::Xml, 1000), xml);
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        assert_eq!(written(Form::Json, 10), "{\"allocat");
        assert_eq!(written(Form::Json, 1), "");
    }
}
