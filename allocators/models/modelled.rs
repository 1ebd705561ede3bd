//! Build script of the modelled crates. Sets `cfg(modelled)`, with which `heapdrome_pages::atomic`
//! provides loom's atomics.

fn main() {
    println!("cargo::rustc-cfg=modelled");
}
