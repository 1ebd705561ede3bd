//! Perl runs heapdrome's script.

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const SCRIPT: &str = include_str!("../../data/loads/perl.pl");

/// Variables that fix the order of hashes and disable the user's options and module path.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PERL_HASH_SEED", "0"),
    ("PERL_PERTURB_KEYS", "0"),
    ("PERL5OPT", ""),
    ("PERL5LIB", ""),
];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let input = request.input(&[SCRIPT], on_event, &|folder| {
        write_file(&folder.join("load.pl"), SCRIPT)
    })?;
    let repetitions = request.values.word("repetitions");
    let command = words(&[&request.tool(0), "load.pl", repetitions]);
    let mut prepared = request.prepared(input, command);
    let pairs = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    prepared.environment = pairs.into();
    Ok(prepared)
}
