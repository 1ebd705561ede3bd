/// Prints the arguments with which a preloadable library is linked.
fn link(soname: &str) {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../link.rs");
    let argument = |argument: &str| println!("cargo:rustc-cdylib-link-arg={argument}");
    // Blocks, thread-local pointers and handlers outlive any `dlclose`.
    argument("-Wl,-z,nodelete");
    argument(&format!("-Wl,-soname,{soname}"));
    // When a process first runs code of a page, Linux also maps the cached pages of the file around
    // it: by default all pages of the same 64 KiB. So place code that few processes run behind all
    // other code, and begin the code at a multiple of 64 KiB.
    argument("-Wl,-z,keep-text-section-prefix");
    argument("-Wl,-z,max-page-size=65536");
    argument("-Wl,-z,separate-loadable-segments");
    // The C compiler's own start and exit code would make another page resident. Only the standard
    // library needs that code, and the profile `preload` builds without the standard library. Build
    // scripts see the profile only as the name of a folder.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = std::path::Path::new(&out).ancestors().nth(3);
    if profile.is_some_and(|folder| folder.ends_with("preload")) {
        argument("-nostartfiles");
    }
}
