//! Graphviz draws a graph that this module generates.

use std::io::{self, Write};

use crate::random::Random;
use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated graph; increase it when the graph changes.
const VERSION: &str = "graphviz graph 1";
/// Number of preceding nodes from which edges may lead to a node.
const REACH: u64 = 40;

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let nodes = request.values.number("nodes");
    let stamp = [VERSION, &nodes.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("graph.gv"), |file| write(file, nodes))
    })?;
    let command = words(&[&request.tool(0), "-Tplain", "graph.gv"]);
    Ok(request.prepared(input, command))
}

/// Writes a directed graph of `count` nodes without cycles. One or two edges lead to each node
/// except the first, from nodes shortly before it.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    let mut random = Random::new(37);
    writeln!(out, "digraph {{")?;
    for node in 0..count {
        writeln!(out, "n{node} [label=\"node {node}\"];")?;
        let near = node.min(REACH);
        if near != 0 {
            for _ in 0..=random.below(3) / 2 {
                let from = node - 1 - random.below(near);
                writeln!(out, "n{from} -> n{node};")?;
            }
        }
    }
    writeln!(out, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_lead_forward_to_every_node_except_the_first() {
        let mut text = Vec::new();
        write(&mut text, 200).expect("memory");
        let text = String::from_utf8(text).expect("ASCII");
        let mut targets = std::collections::BTreeSet::new();
        for line in text.lines().filter(|line| line.contains("->")) {
            let number = |name: &str| name.trim_matches([';', 'n']).parse::<u64>();
            let (from, to) = line.split_once(" -> ").expect("an edge");
            let (from, to) = (number(from).expect("a node"), number(to).expect("a node"));
            assert!(from < to && to - from <= REACH, "{line}");
            targets.insert(to);
        }
        assert_eq!(targets.len(), 199);
    }
}
