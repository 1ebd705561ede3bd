//! The catalog workload as a binary of this crate; `heapdrome-catalog` is the installed one.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog_load::Allocator = heapdrome_catalog_load::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog_load::main()
}
