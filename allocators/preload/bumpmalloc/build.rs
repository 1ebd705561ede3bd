//! Links the library so that it stays loaded: blocks, thread-local pointers and handlers outlive
//! any `dlclose`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbumpmalloc.so");
}
