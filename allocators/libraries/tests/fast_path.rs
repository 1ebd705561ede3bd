//! The golden of the fast path: how many instructions malloc and free take, from the first one of the
//! entry point to its return. Counted in the libraries as they are shipped.

#![cfg(target_arch = "x86_64")]

use std::collections::HashMap;

use heapdrome_libraries::find;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object, ObjectSymbol};

/// A path is not followed further than this.
const FAR: usize = 200;

/// The least number of instructions from `entry` to a return, over all branches, without calls and
/// without leaving `code`, which lies at `address`. The slow paths are jumps to other functions that
/// make calls; what is left are the ways on which nothing but the fast path runs.
fn shortest_return(code: &[u8], address: u64, entry: u64) -> Option<usize> {
    let mut least: HashMap<u64, usize> = HashMap::new();
    let mut open = vec![(entry, 0_usize)];
    let mut found: Option<usize> = None;
    while let Some((at, before)) = open.pop() {
        let count = before + 1;
        if count > FAR || least.get(&at).is_some_and(|&known| known <= count) {
            continue;
        }
        least.insert(at, count);
        let Some(instruction) = decode(code, address, at) else {
            continue;
        };
        match instruction.flow_control() {
            FlowControl::Next => open.push((instruction.next_ip(), count)),
            FlowControl::UnconditionalBranch => {
                open.push((instruction.near_branch_target(), count));
            }
            FlowControl::ConditionalBranch => {
                open.push((instruction.next_ip(), count));
                open.push((instruction.near_branch_target(), count));
            }
            FlowControl::Return => found = Some(found.map_or(count, |known| known.min(count))),
            _ => {}
        }
    }
    found
}

fn decode(code: &[u8], address: u64, at: u64) -> Option<Instruction> {
    let offset = usize::try_from(at.checked_sub(address)?).ok()?;
    let rest = code.get(offset..).filter(|rest| !rest.is_empty())?;
    let instruction = Decoder::with_ip(64, rest, at, DecoderOptions::NONE).decode();
    (instruction.code() != Code::INVALID).then_some(instruction)
}

/// The count for a function of a library, whose own bytes are all that is followed.
fn count(library: &str, function: &str) -> usize {
    let library = find(library).expect("heapdrome carries it").bytes;
    let file = object::File::parse(library).expect("it is an object");
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(function) && symbol.is_definition())
        .expect("it exports the function");
    let (code, address) = function_bytes(&file, symbol.address(), symbol.size());
    shortest_return(code, address, address).expect("a way leads to a return")
}

fn function_bytes<'a>(file: &object::File<'a>, address: u64, size: u64) -> (&'a [u8], u64) {
    use object::ObjectSection;
    let code = file
        .sections()
        .find_map(|section| section.data_range(address, size).ok().flatten())
        .expect("a section holds the function");
    (code, address)
}

#[test]
fn malloc_takes_at_most_16_instructions_and_free_18() {
    let (malloc, free) = (
        count("libelfmalloc.so", "malloc"),
        count("libelfmalloc.so", "free"),
    );
    assert!(
        malloc <= 16 && free <= 18,
        "malloc takes {malloc}, free {free}"
    );
}

#[test]
fn operator_new_and_delete_take_as_many_as_malloc_and_free() {
    for (operator, function) in [("_Znwm", "malloc"), ("_ZdlPv", "free")] {
        assert_eq!(
            count("libelfmalloc.so", operator),
            count("libelfmalloc.so", function)
        );
    }
}

#[test]
fn malloc_of_the_thread_local_cache_takes_at_most_16_instructions() {
    assert!(count("libelfmalloc-l.so", "malloc") <= 16);
}

#[test]
fn malloc_of_the_arena_takes_at_most_20_instructions() {
    assert!(count("libbumpmalloc.so", "malloc") <= 20);
}

#[test]
fn one_instruction_more_is_noticed() {
    let library = find("libelfmalloc.so").expect("heapdrome carries it").bytes;
    let file = object::File::parse(library).expect("it is an object");
    for name in ["malloc", "free"] {
        let symbol = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok(name))
            .expect("it exports the function");
        let (code, address) = function_bytes(&file, symbol.address(), symbol.size());
        // A nop in front; branches keep their distances.
        let mut longer = vec![0x90];
        longer.extend_from_slice(code);
        let before = shortest_return(code, address, address).expect("a way to a return");
        let after = shortest_return(&longer, address - 1, address - 1);
        assert_eq!(after, Some(before + 1), "{name}");
    }
}

#[test]
fn the_shortest_of_all_ways_counts_and_calls_and_slow_paths_do_not() {
    // 0: test rdi,rdi; 3: je 8; 5: nop; 6: nop; 7: ret; 8: jmp 100
    let branches = [0x48, 0x85, 0xff, 0x74, 0x03, 0x90, 0x90, 0xc3, 0xeb, 0x5a];
    assert_eq!(shortest_return(&branches, 0, 0), Some(5));
    // 0: test rdi,rdi; 3: je 7; 5: nop; 6: nop; 7: ret
    let joined = [0x48, 0x85, 0xff, 0x74, 0x02, 0x90, 0x90, 0xc3];
    assert_eq!(shortest_return(&joined, 0, 0), Some(3));
    // 0: nop; 1: jmp 0
    assert_eq!(shortest_return(&[0x90, 0xeb, 0xfd], 0, 0), None);
    // 0: call rax; 2: ret
    assert_eq!(shortest_return(&[0xff, 0xd0, 0xc3], 0, 0), None);
}
