//! Counts what the data of the catalog workload request of an allocator; `heapdrome-catalog
//! gen-data` runs it.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog::CountingAllocator = heapdrome_catalog::CountingAllocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog::count_main()
}
