//! Runs one cell of the paging experiments; see the crate `heapdrome-lgalloc-bench`.

fn main() -> std::process::ExitCode {
    heapdrome_lgalloc_bench::main()
}
