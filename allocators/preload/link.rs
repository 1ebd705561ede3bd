/// Prints the arguments with which a preloadable library is linked.
fn link(soname: &str) {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../link.rs");
    let argument = |argument: &str| println!("cargo:rustc-cdylib-link-arg={argument}");
    // Blocks, thread-local pointers and handlers outlive any `dlclose`.
    argument("-Wl,-z,nodelete");
    argument(&format!("-Wl,-soname,{soname}"));
    // When a process first runs code of a page, Linux also maps the pages of the file around it
    // that are in memory: by default all of the same 64 KiB. So the code that few processes run
    // lies behind the other code, and the code begins at a multiple of 64 KiB.
    argument("-Wl,-z,keep-text-section-prefix");
    argument("-Wl,-z,max-page-size=65536");
    argument("-Wl,-z,separate-loadable-segments");
    // The C compiler's own start and exit code would run from another page. Only the standard
    // library needs it, which the profile `preload` leaves out. Cargo shows the profile to build
    // scripts only as the name of a folder.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = std::path::Path::new(&out).ancestors().nth(3);
    if profile.is_some_and(|folder| folder.ends_with("preload")) {
        argument("-nostartfiles");
    }
}
