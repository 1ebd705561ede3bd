//! Translation of recorded functions into calls of a replay.

use heapdrome_trace::Recording;

/// The call that makes a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Malloc,
    Calloc,
    /// posix_memalign with an alignment of at least this number of bytes.
    Aligned(u64),
    AlignedAlloc,
}

/// Minimum alignment of posix_memalign in bytes.
const POINTER: u64 = size_of::<usize>() as u64;

/// Size of a page in bytes, for recordings that do not contain it.
const PAGE: u64 = 4096;

/// Returns the call for each function of a recording, indexed by the function's number.
pub(super) fn calls(recording: &Recording) -> Vec<Call> {
    let page = match recording.page_bytes {
        0 => PAGE,
        bytes => bytes,
    };
    let call = |name: &String| match name.as_str() {
        "calloc" => Call::Calloc,
        "aligned_alloc" => Call::AlignedAlloc,
        "memalign" | "posix_memalign" => Call::Aligned(POINTER),
        "valloc" | "pvalloc" => Call::Aligned(page),
        name if name.contains("St11align_val_t") => Call::Aligned(POINTER),
        _ => Call::Malloc,
    };
    recording.functions.iter().map(call).collect()
}

/// Returns the call that makes a block, and the binary logarithm of the block's alignment; 0 if the
/// call has no alignment.
pub(super) fn resolved(call: Call, size: u64, alignment: u64) -> (Call, u32) {
    let least = match call {
        Call::Malloc | Call::Calloc if alignment == 0 => return (call, 0),
        Call::Aligned(least) => least,
        _ => POINTER,
    };
    // Some allocators accept other alignments, and round them up to a power of two.
    let alignment = alignment.max(least).min(1 << 62).next_power_of_two();
    let call = match call {
        // The C standard lets an allocator refuse a size that is not a multiple of the alignment.
        Call::AlignedAlloc if size.is_multiple_of(alignment) => Call::AlignedAlloc,
        Call::Calloc => return (Call::Calloc, 0),
        _ => Call::Aligned(least),
    };
    (call, alignment.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_its_call() {
        let names = ["malloc", "_Znwm", "calloc", "valloc", "aligned_alloc"];
        let recording = Recording {
            functions: names.map(String::from).to_vec(),
            ..Recording::default()
        };
        let expected = [
            Call::Malloc,
            Call::Malloc,
            Call::Calloc,
            Call::Aligned(4096),
            Call::AlignedAlloc,
        ];
        assert_eq!(calls(&recording), expected);
    }

    #[test]
    fn alignments_are_powers_of_two_that_the_call_takes() {
        assert_eq!(resolved(Call::Malloc, 10, 0), (Call::Malloc, 0));
        assert_eq!(resolved(Call::Aligned(8), 10, 1), (Call::Aligned(8), 3));
        assert_eq!(
            resolved(Call::Aligned(4096), 10, 0),
            (Call::Aligned(4096), 12)
        );
        assert_eq!(resolved(Call::Aligned(8), 10, 48), (Call::Aligned(8), 6));
        assert_eq!(
            resolved(Call::AlignedAlloc, 128, 64),
            (Call::AlignedAlloc, 6)
        );
        assert_eq!(resolved(Call::AlignedAlloc, 100, 64), (Call::Aligned(8), 6));
        assert_eq!(
            resolved(Call::Aligned(8), 1, u64::MAX),
            (Call::Aligned(8), 62)
        );
    }
}
