//! Writes the data of the catalog workload, and runs the workload; see the crate
//! `heapdrome-catalog-load`.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog_load::Allocator = heapdrome_catalog_load::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog_load::main()
}
