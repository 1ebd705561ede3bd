//! The loads of installed programs, one module each, and the data that several of them use.

mod cppcheck;
mod customers;
mod ghostscript;
mod git;
mod graphicsmagick;
mod graphviz;
mod jq;
mod lua;
mod perl;
mod python;
mod redis;
mod rocksdb;
mod rustc;
mod sqlite;
mod xmllint;
mod z3;

use crate::request::Request;
use crate::{Event, Prepared, ProgramError};

pub(crate) type Load = fn(&Request<'_>, &mut dyn FnMut(Event)) -> Result<Prepared, ProgramError>;

/// Returns the load of the program of this name; `None` if there is none, as for a build.
pub(crate) fn find(name: &str) -> Option<Load> {
    Some(match name {
        "cppcheck" => cppcheck::prepare,
        "ghostscript" => ghostscript::prepare,
        "git" => git::prepare,
        "graphicsmagick" => graphicsmagick::prepare,
        "graphviz" => graphviz::prepare,
        "jq" => jq::prepare,
        "lua" => lua::prepare,
        "perl" => perl::prepare,
        "python" => python::prepare,
        "redis" => redis::prepare,
        "rocksdb" => rocksdb::prepare,
        "rustc" => rustc::prepare,
        "sqlite" => sqlite::prepare,
        "xmllint" => xmllint::prepare,
        "z3" => z3::prepare,
        _ => return None,
    })
}

/// Asserts that a load writes the same file each time, and that a larger one begins with it.
#[cfg(test)]
fn assert_grows_at_its_end(write: fn(&mut Vec<u8>, u64) -> std::io::Result<()>) {
    let file = |count| {
        let mut bytes = Vec::new();
        write(&mut bytes, count).expect("memory");
        bytes
    };
    assert_eq!(file(3), file(3));
    assert!(file(4).starts_with(&file(3)) && file(4) != file(3));
}
