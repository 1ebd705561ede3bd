//! Writes the data of the catalog workload, and runs it; see the crate `heapdrome-catalog`.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog::Allocator = heapdrome_catalog::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog::main()
}
