//! Compiles a crate of the allocators for models; see `pages::atomic`.

fn main() {
    println!("cargo::rustc-cfg=modelled");
}
