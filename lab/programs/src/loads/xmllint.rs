//! xmllint parses a document that this module generates, and evaluates an expression on its tree.

use std::io::{self, Write};

use super::customers::Customer;
use crate::random::Random;
use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated document; increase it when the document changes.
const VERSION: &str = "xmllint document 1";
/// Expression that counts and sums nodes of the whole tree.
const SUMS: &str = "concat(count(//order[tag]), ' ', sum(//price), ' ', sum(//order/@number), ' ', \
                    count(//tag[. = 'slab-7']), ' ', string(//customer[last()]/name))";

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let customers = request.values.number("customers");
    let stamp = [VERSION, &customers.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("customers.xml"), |file| write(file, customers))
    })?;
    let command = words(&[&request.tool(0), "--huge", "--xpath", SUMS, "customers.xml"]);
    Ok(request.prepared(input, command))
}

/// Writes a document of `count` customers.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    let mut random = Random::new(29);
    writeln!(out, "<customers>")?;
    for _ in 0..count {
        let Customer { name, city, orders } = Customer::draw(&mut random);
        write!(out, "<customer><name>{name}</name><city>{city}</city>")?;
        for order in orders {
            let (number, price) = (order.number, order.price);
            write!(out, "<order number=\"{number}\"><price>{price}</price>")?;
            for tag in order.tags {
                write!(out, "<tag>{tag}</tag>")?;
            }
            write!(out, "</order>")?;
        }
        writeln!(out, "</customer>")?;
    }
    writeln!(out, "</customers>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_whole_and_the_same_each_time() {
        let text = || {
            let mut text = Vec::new();
            write(&mut text, 20).expect("memory");
            String::from_utf8(text).expect("ASCII")
        };
        assert_eq!(text(), text());
        assert!(text().ends_with("</customer>\n</customers>\n"));
        assert_eq!(
            text().matches("<order ").count(),
            text().matches("</order>").count()
        );
    }
}
