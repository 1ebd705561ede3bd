//! jq reads, checks and groups documents that this module generates.

use std::io::{self, Write};

use super::customers::{Customer, Order};
use crate::random::Random;
use crate::request::{Request, stream_file, words, write_file};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated documents; increase it when the documents change.
const VERSION: &str = "jq documents 1";
const FILTER: &str = include_str!("../../data/loads/group.jq");

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let documents = request.values.number("documents");
    let stamp = [VERSION, FILTER, &documents.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        write_file(&folder.join("group.jq"), FILTER)?;
        stream_file(&folder.join("customers.json"), |file| {
            write(file, documents)
        })
    })?;
    let rest = ["--null-input", "--compact-output", "--from-file"];
    let mut command = words(&[&request.tool(0)]);
    command.extend(words(&rest));
    command.extend(words(&["group.jq", "customers.json"]));
    Ok(request.prepared(input, command))
}

/// Writes `count` documents, each on its own line.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    let mut random = Random::new(23);
    for _ in 0..count {
        let Customer { name, city, orders } = Customer::draw(&mut random);
        let orders: Vec<_> = orders.iter().map(order).collect();
        let orders = orders.join(",");
        writeln!(
            out,
            r#"{{"name":"{name}","city":"{city}","orders":[{orders}]}}"#
        )?;
    }
    Ok(())
}

fn order(order: &Order) -> String {
    let Order {
        number,
        price,
        tags,
    } = order;
    let tags: Vec<_> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
    let tags = tags.join(",");
    format!(r#"{{"number":{number},"price":{price},"tags":[{tags}]}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_documents_begin_with_the_same() {
        let text = |count| {
            let mut text = Vec::new();
            write(&mut text, count).expect("memory");
            String::from_utf8(text).expect("ASCII")
        };
        assert!(text(20).starts_with(&text(10)));
        assert_eq!(text(20).lines().count(), 20);
    }
}
