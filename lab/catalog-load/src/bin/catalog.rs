//! The catalog workload as a binary of this crate. The installed binary is `heapdrome-catalog`.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog_load::Allocator = heapdrome_catalog_load::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog_load::main()
}
