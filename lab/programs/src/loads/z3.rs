//! Z3 solves problems that this module generates.

use std::io::{self, Write};

use crate::random::Random;
use crate::request::{Request, stream_file, words};
use crate::{Event, Prepared, ProgramError};

/// Version of the generated problems; increase it when the problems change.
const VERSION: &str = "z3 problems 1";
/// Number of unknowns in a system, and also the number of inequalities over all unknowns.
const UNKNOWNS: u64 = 18;
/// Number of leaves of a tree.
const LEAVES: u64 = 5;

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let problems = request.values.number("problems");
    let stamp = [VERSION, &problems.to_string()];
    let input = request.input(&stamp, on_event, &|folder| {
        stream_file(&folder.join("problems.smt2"), |file| write(file, problems))
    })?;
    let command = words(&[
        &request.tool(0),
        "smt.random_seed=1",
        "sat.random_seed=1",
        "problems.smt2",
    ]);
    Ok(request.prepared(input, command))
}

/// Writes `count` pairs of problems; Z3 forgets each problem before the next.
fn write(out: &mut impl Write, count: u64) -> io::Result<()> {
    for number in 0..count {
        system(out, &mut Random::new(11 + number))?;
        writeln!(out, "(check-sat)\n(reset)")?;
        order(out)?;
        writeln!(out, "(check-sat)\n(reset)")?;
    }
    Ok(())
}

/// Writes a system with as many inequalities as unknowns, besides the bounds of each unknown. The
/// factors, from -10,000 to 9,999, make the exact fractions long.
fn system(out: &mut impl Write, random: &mut Random) -> io::Result<()> {
    writeln!(out, "(set-logic QF_LRA)")?;
    for unknown in 0..UNKNOWNS {
        writeln!(
            out,
            "(declare-const x{unknown} Real)\n(assert (<= 0 x{unknown} 1000))"
        )?;
    }
    for _ in 0..UNKNOWNS {
        write!(out, "(assert (>= (+")?;
        for unknown in 0..UNKNOWNS {
            match random.below(20_000) {
                factor @ 10_000.. => write!(out, " (* {} x{unknown})", factor - 10_000)?,
                factor => write!(out, " (* (- {}) x{unknown})", 10_000 - factor)?,
            }
        }
        writeln!(out, ") {}))", 1 + random.below(1000))?;
    }
    Ok(())
}

/// Writes the claim that two trees of one operator over the same leaves differ. The operator is
/// commutative and associative, so the trees are equal, and the claim is false. Z3 creates many
/// terms until it finds the contradiction.
fn order(out: &mut impl Write) -> io::Result<()> {
    let leaf = |number: u64| format!("(f {number})");
    let grown = |tree: String, number| format!("(g {tree} {})", leaf(number));
    let up = (1..LEAVES).fold(leaf(0), grown);
    let down = (0..LEAVES - 1).rev().fold(leaf(LEAVES - 1), grown);
    writeln!(
        out,
        "(declare-fun f (Int) Int)\n(declare-fun g (Int Int) Int)\n\
         (assert (forall ((x Int) (y Int)) (! (= (g x y) (g y x)) :pattern ((g x y)))))\n\
         (assert (forall ((x Int) (y Int) (z Int)) \
         (! (= (g (g x y) z) (g x (g y z))) :pattern ((g (g x y) z)))))\n\
         (assert (not (= {up} {down})))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_problems_are_whole_and_the_same_each_time() {
        let text = |count| {
            let mut text = Vec::new();
            write(&mut text, count).expect("memory");
            String::from_utf8(text).expect("ASCII")
        };
        let two = text(2);
        assert_eq!(two, text(2));
        assert!(
            two.starts_with(&text(1)),
            "more problems begin with the same"
        );
        assert_eq!(two.matches("(check-sat)").count(), 4);
        assert_eq!(two.matches("(>= ").count(), 2 * UNKNOWNS as usize);
        let depth = two.bytes().fold(0, |depth, byte| match byte {
            b'(' => depth + 1,
            b')' => depth - 1,
            _ => depth,
        });
        assert_eq!(depth, 0, "parentheses match");
        assert!(two.contains("(not (= (g (g (g (g (f 0) (f 1)) (f 2)) (f 3)) (f 4)) (g (g"));
    }
}
