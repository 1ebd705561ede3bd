//! Processors to which threads are pinned.

/// Returns `threads` processors: physical cores first, then their siblings, and other sockets last.
/// If this process may use fewer, returns an empty list, which means all processors.
pub fn processors(threads: u64) -> Vec<usize> {
    first(heapdrome_machine::processors_in_order(), threads)
}

fn first(mut processors: Vec<usize>, threads: u64) -> Vec<usize> {
    match usize::try_from(threads) {
        Ok(threads) if threads <= processors.len() => processors.truncate(threads),
        _ => processors.clear(),
    }
    processors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_a_processor_each_or_all_of_them() {
        assert_eq!(first(vec![0, 2, 1], 2), [0, 2]);
        assert_eq!(first(vec![0, 2, 1], 3), [0, 2, 1]);
        assert_eq!(first(vec![0, 2, 1], 4), Vec::<usize>::new());
    }
}
