//! The catalog workload, as it is run from this crate; what is installed is `heapdrome-catalog`.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog_load::Allocator = heapdrome_catalog_load::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog_load::main()
}
