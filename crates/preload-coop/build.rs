//! Compiles the C source and sets the linker options of the library.

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    cc::Build::new()
        .file("src/shim.c")
        .std("gnu11")
        .opt_level(2)
        .pic(true)
        .warnings_into_errors(true)
        .extra_warnings(true)
        // A cancellation unwinds the waiting functions.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        .flag("-fno-plt")
        .flag("-fvisibility=hidden")
        .compile("antiphon_coop_shim");
    for argument in [
        // A library in whose code threads may wait must not be unloaded.
        "-Wl,-z,nodelete",
        // No lazy binding inside a wait, which may be a signal handler's.
        "-Wl,-z,now",
        "-Wl,-z,defs",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
