//! The catalog workload, as it is run from this crate; what is installed is `heapdrome-catalog`.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog::Allocator = heapdrome_catalog::Allocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog::main()
}
