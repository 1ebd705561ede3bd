//! Counts the instructions of a function's fast path in a shipped library.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Architecture, Object, ObjectSection, ObjectSymbol};

use crate::find;

/// Limit of the fast path of one function in an embedded library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Name of the allocator: that of its library without `lib` and `.so`.
    pub allocator: &'static str,
    /// Exported symbol of the function, such as `malloc`.
    pub function: &'static str,
    /// Maximum number of instructions, from the first instruction of the entry point through its
    /// return.
    pub at_most: usize,
}

const fn golden(allocator: &'static str, function: &'static str, at_most: usize) -> Golden {
    Golden {
        allocator,
        function,
        at_most,
    }
}

/// Limits of each `malloc` and `free` whose shortest path is also the usual path, which a test
/// checks. bumpmalloc's `free` is not among them: its shortest path frees null.
pub const GOLDENS: &[Golden] = &[
    golden("elfmalloc", "malloc", 16),
    golden("elfmalloc", "free", 24),
    golden("elfmalloc-l", "malloc", 16),
    golden("elfmalloc-l", "free", 24),
    golden("bumpmalloc", "malloc", 20),
];

impl Golden {
    /// Returns the bytes of the library; `None` if heapdrome was built without it.
    pub fn bytes(&self) -> Option<&'static [u8]> {
        let library = find(&format!("lib{}.so", self.allocator))?;
        (!library.bytes.is_empty()).then_some(library.bytes)
    }

    /// Returns the number of instructions of the function's fast path; `None` without the library,
    /// or on processors other than x86-64.
    pub fn instructions(&self) -> Option<usize> {
        instructions(self.bytes()?, self.function)
    }
}

/// Returns the number of instructions on the shortest path from an exported function's entry point
/// through a return. Ignores paths that make a call or leave the function, because those are slow
/// paths.
///
/// Returns `None` if the library is not for x86-64, does not export the function, or has no path to
/// a return.
fn instructions(library: &[u8], function: &str) -> Option<usize> {
    let (code, address) = code_of(library, function)?;
    shortest_return(code, address)
}

/// Returns the bytes of an exported function, and its address.
fn code_of<'a>(library: &'a [u8], function: &str) -> Option<(&'a [u8], u64)> {
    let file = object::File::parse(library).ok()?;
    if file.architecture() != Architecture::X86_64 {
        return None;
    }
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(function) && symbol.is_definition())?;
    let (address, size) = (symbol.address(), symbol.size());
    let code = file
        .sections()
        .find_map(|section| section.data_range(address, size).ok().flatten())?;
    Some((code, address))
}

/// Maximum length of a path in the search, in instructions.
const FAR: usize = 200;

/// Returns the number of instructions on the shortest path from the start of `code` through a
/// return. Ignores paths that make a call or leave `code`. `address` is the address of `code`.
fn shortest_return(code: &[u8], address: u64) -> Option<usize> {
    let mut least: HashMap<u64, usize> = HashMap::new();
    let mut open = vec![(address, 0_usize)];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_all_ways_counts_and_calls_and_slow_paths_do_not() {
        // 0: test rdi,rdi; 3: je 8; 5: nop; 6: nop; 7: ret; 8: jmp 100
        let branches = [0x48, 0x85, 0xff, 0x74, 0x03, 0x90, 0x90, 0xc3, 0xeb, 0x5a];
        assert_eq!(shortest_return(&branches, 0), Some(5));
        // 0: test rdi,rdi; 3: je 7; 5: nop; 6: nop; 7: ret
        let joined = [0x48, 0x85, 0xff, 0x74, 0x02, 0x90, 0x90, 0xc3];
        assert_eq!(shortest_return(&joined, 0), Some(3));
        // 0: nop; 1: jmp 0
        assert_eq!(shortest_return(&[0x90, 0xeb, 0xfd], 0), None);
        // 0: call rax; 2: ret
        assert_eq!(shortest_return(&[0xff, 0xd0, 0xc3], 0), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn one_instruction_more_is_noticed() {
        for golden in GOLDENS {
            let library = golden.bytes().expect("heapdrome carries it");
            let (code, address) = code_of(library, golden.function).expect("it is exported");
            // Put a nop in front. Branches are relative, so they stay correct.
            let mut longer = vec![0x90];
            longer.extend_from_slice(code);
            let before = shortest_return(code, address).expect("a way to a return");
            let after = shortest_return(&longer, address - 1);
            assert_eq!(after, Some(before + 1), "{golden:?}");
        }
    }

    #[test]
    fn what_is_no_library_has_no_count() {
        assert_eq!(instructions(b"\x7fELF", "malloc"), None);
        assert_eq!(instructions(&[], "malloc"), None);
    }
}
