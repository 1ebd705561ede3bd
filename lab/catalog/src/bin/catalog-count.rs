//! Counts what data sets request; `catalog gen-data` runs this.

#[global_allocator]
static ALLOCATOR: heapdrome_catalog::CountingAllocator = heapdrome_catalog::CountingAllocator;

fn main() -> std::process::ExitCode {
    heapdrome_catalog::count_main()
}
