//! Links the library as `../link.rs` explains.

include!("../link.rs");

fn main() {
    link("libelfmalloc-hardened.so");
}
