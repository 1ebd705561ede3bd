//! Tests heapdrome through its binary, with allocators and programs that gcc builds here, some of
//! them broken on purpose.

mod as_is;
mod bad_files;
mod bad_input;
mod brief;
mod compare;
mod compressed;
mod decided;
mod destinations;
mod evidence;
mod failing_entrants;
mod judged;
mod killed;
mod misuse;
mod pages;
mod paging;
mod private;
mod profiles;
mod proof;
mod readme;
mod record;
mod replays;
mod reports;
mod results;
mod resume;
mod same_work;
mod saved;
mod servers;
mod suites;
mod support;
mod survive;
mod sweeps;
mod traces;
mod unproven;
mod usual;
mod workloads;
