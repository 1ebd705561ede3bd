//! Function names of the frames in stacks.

use std::collections::{BTreeMap, HashMap};

use heapdrome_profile::{Amount, Profile, StackUse};
use heapdrome_trace::Frame;

use crate::foreign;

/// Maximum length of a function's name, in characters.
const NAME: usize = 80;

/// Name shown for blocks without a stack.
pub(crate) const NO_STACK: &str = "(no stack recorded)";

/// Maximum number of characters of a name that are read, so that a huge name in a damaged file
/// costs little time.
const LOOKED_AT: usize = 2000;

/// Maximum length of template arguments that are shown, in bytes, including the brackets.
const ARGUMENTS: usize = 16;

/// Names of functions that pass a request on to an allocator.
const WRAPPERS: [&str; 26] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "operator new",
    "operator new[]",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_Malloc",
    "_PyObject_Realloc",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_realloc",
];

/// Prefixes of the names of further wrappers: the standard libraries of C++ and Rust with their
/// containers, and the memory interface of Python.
const WRAPPING: [&str; 11] = [
    "std::",
    "void std::",
    "__gnu_cxx::",
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "<std::",
    "hashbrown::",
    "PyMem_",
    "_PyMem_",
];

/// A stack as shown to a reader: its functions, innermost first, and its blocks.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) names: Vec<String>,
    pub(crate) of: StackUse,
}

impl Called {
    /// Returns the functions of the stack, innermost first, without those that only pass a request
    /// on to an allocator.
    pub(crate) fn shown(&self) -> &[String] {
        from_requester(&self.names)
    }

    /// Returns the function that requested the blocks; [`NO_STACK`] for blocks without a stack.
    pub(crate) fn requester(&self) -> &str {
        self.shown().first().map_or("", String::as_str)
    }

    /// Returns the functions on one line, the outermost first.
    pub(crate) fn folded(&self) -> String {
        folded(&self.names)
    }
}

/// Formats a stack on one line: the function that requested a block, then its callers. Successive
/// calls of one function share an entry: `walk (x12) < main`.
pub(crate) fn told(names: &[String]) -> String {
    let runs = names.chunk_by(|name, caller| name == caller);
    let told = runs.map(|run| match run {
        [name] => name.clone(),
        _ => format!("{} (x{})", run[0], run.len()),
    });
    told.collect::<Vec<_>>().join(" < ")
}

/// Formats functions, given innermost first, on one line with the outermost first.
pub(crate) fn folded(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    names.join(";")
}

fn from_requester(names: &[String]) -> &[String] {
    let is_wrapper = |name: &String| {
        WRAPPERS.contains(&name.as_str()) || WRAPPING.iter().any(|begin| name.starts_with(begin))
    };
    let wrappers = names.iter().take_while(|name| is_wrapper(name)).count();
    // If no other function is known, keep the outermost wrapper.
    &names[wrappers.min(names.len().saturating_sub(1))..]
}

/// Returns the stacks of all processes. Stacks with the same functions are merged. The blocks at
/// the peak are those of the process with the highest peak.
pub(crate) fn stacks(profile: &Profile) -> Vec<Called> {
    let mut all = BTreeMap::<Vec<String>, StackUse>::new();
    let mut names = Names::new(profile);
    let mut add = |one: &StackUse| {
        let known = all.entry(names.of(one.stack)).or_default();
        known.add(one);
    };
    for one in &profile.all.counts.stacks {
        let at_peak = Amount::default();
        add(&StackUse {
            at_peak,
            at_peak_variance: Default::default(),
            ..*one
        });
    }
    let largest = profile.largest().into_iter();
    for one in largest.flat_map(|process| &process.counts.stacks) {
        add(&StackUse {
            at_peak: one.at_peak,
            at_peak_variance: one.at_peak_variance,
            stack: one.stack,
            ..StackUse::default()
        });
    }
    let called = |(names, of)| Called { names, of };
    all.into_iter().map(called).collect()
}

/// Returns the functions of a stack, innermost first; [`NO_STACK`] if the stack is unknown or has
/// no frames.
pub(crate) fn names(profile: &Profile, stack: Option<u32>) -> Vec<String> {
    Names::new(profile).of(stack)
}

/// Names of frames. Thousands of stacks share most of their frames, so each frame is named only
/// once.
struct Names<'a> {
    profile: &'a Profile,
    known: HashMap<Frame, Vec<String>>,
}

impl<'a> Names<'a> {
    fn new(profile: &'a Profile) -> Self {
        let known = HashMap::new();
        Self { profile, known }
    }

    /// Returns the functions of a stack, innermost first; [`NO_STACK`] if the stack is unknown or
    /// has no frames.
    fn of(&mut self, stack: Option<u32>) -> Vec<String> {
        let Self { profile, known } = self;
        let frames = stack.and_then(|stack| profile.code.stacks.get(stack as usize));
        let mut names = Vec::new();
        for frame in frames.into_iter().flatten() {
            let own = known
                .entry(*frame)
                .or_insert_with(|| of_frame(profile, *frame));
            names.extend_from_slice(own);
        }
        if names.is_empty() {
            names.push(NO_STACK.to_owned());
        }
        names
    }
}

/// Returns the functions of a frame, innermost first. There are several if functions were inlined.
fn of_frame(profile: &Profile, frame: Frame) -> Vec<String> {
    match profile.symbols.places(frame) {
        [] => vec![address(profile, frame)],
        places => places
            .iter()
            .map(|place| function(&place.function))
            .collect(),
    }
}

/// Returns the module and the address of a frame, such as `libx.so+0x12ab`, or only the address if
/// the module is unknown.
pub(crate) fn address(profile: &Profile, frame: Frame) -> String {
    let module = frame
        .module
        .and_then(|module| profile.code.modules.get(module as usize));
    match module {
        Some(module) => {
            let name = module.path.rsplit('/').next().unwrap_or_default();
            format!("{}+{:#x}", foreign::name(name), frame.address)
        }
        None => format!("{:#x}", frame.address),
    }
}

/// Returns the name of a function without its parameters and without long template arguments.
pub(crate) fn function(name: &str) -> String {
    let whole: String = foreign::line(name).chars().take(LOOKED_AT).collect();
    let bare = whole.strip_suffix(" const").unwrap_or(&whole);
    let bare = match parameters(bare) {
        Some(begin) if begin > 0 => &bare[..begin],
        _ => &whole,
    };
    foreign::shorten(&without_arguments(bare), NAME)
}

/// Returns a name with `<…>` in place of long template arguments: `std::map<…>::insert`.
fn without_arguments(name: &str) -> String {
    let mut short = String::new();
    let mut rest = name;
    while let Some(begin) = rest.find('<') {
        let (head, tail) = rest.split_at(begin);
        short.push_str(head);
        // The `<` of `operator<` and the `<` at the start of `<T as Trait>::f` begin no template
        // arguments.
        let is_template = !short.is_empty() && !short.ends_with("operator");
        rest = match end_of_arguments(tail).filter(|end| is_template && *end > ARGUMENTS) {
            Some(end) => {
                short.push_str("<…>");
                &tail[end..]
            }
            None => {
                short.push('<');
                &tail[1..]
            }
        };
    }
    short + rest
}

/// Returns the index after the template arguments at the start of `text`; `None` if they are not
/// closed.
fn end_of_arguments(text: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_u32, ' ');
    for (place, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' if depth == 1 => return Some(place + 1),
            '>' => depth -= 1,
            _ => {}
        }
        before = letter;
    }
    None
}

/// Returns the index at which the parameter list at the end of a name begins; `None` if the name
/// does not end with one.
fn parameters(name: &str) -> Option<usize> {
    if !name.ends_with(')') {
        return None;
    }
    let mut depth = 0_u32;
    for (place, letter) in name.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' if depth == 1 => {
                let is_operator = name[..place].ends_with("operator");
                return (!is_operator).then_some(place);
            }
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_recursion_is_one_entry() {
        assert_eq!(told(&names(&["a", "b", "b", "main"])), "a < b (x2) < main");
        assert_eq!(told(&names(&["a", "b", "a"])), "a < b < a");
        assert_eq!(told(&[]), "");
    }

    #[test]
    fn names_lose_their_parameters_alone() {
        for (name, expected) in [
            ("app::outer(unsigned long)", "app::outer"),
            (
                "(anonymous namespace)::f(int (*)(int)) const",
                "(anonymous namespace)::f",
            ),
            ("x::operator()(int)", "x::operator()"),
            ("x::operator()", "x::operator()"),
            (
                "std::map<int, std::string>::at(int const&)",
                "std::map<…>::at",
            ),
            ("void f<int>(g<h<i>, j<k>, lll>)", "void f<int>"),
            (
                "bool operator< <A, BBBBBBBBBBBBBBBBB>(A)",
                "bool operator< <…>",
            ),
            (
                "<alloc::vec::Vec<u8> as core::ops::Drop>::drop",
                "<alloc::vec::Vec<u8> as core::ops::Drop>::drop",
            ),
            ("a<b<c<d<e<f", "a<b<c<d<e<f"),
            ("main", "main"),
            ("a)(", "a)("),
            ("))", "))"),
        ] {
            assert_eq!(function(name), expected);
        }
    }

    #[test]
    fn the_requester_is_the_first_that_is_no_wrapper() {
        let stack = names(&[
            "operator new",
            "std::allocator<int>::allocate",
            "void std::vector<…>::_M_realloc_insert",
            "parse",
            "std::sort",
            "main",
        ]);
        assert_eq!(from_requester(&stack), &stack[3..]);
        let wrapper = names(&["malloc"]);
        assert_eq!(from_requester(&wrapper), wrapper);
        assert!(from_requester(&[]).is_empty());
    }
}
