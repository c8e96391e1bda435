//! Compiles the C sources and sets the linker options of the library.

fn main() {
    let sources = ["src/shim.c", "src/exec/elsewhere.c"];
    for source in sources {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .files(sources)
        .std("gnu11")
        .opt_level(2)
        .pic(true)
        .warnings_into_errors(true)
        .extra_warnings(true)
        // A cancellation unwinds the waiting functions and runs their cleanups.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        // A cancellation may happen at any instruction of `sleep_cancellably` and of the functions
        // that it calls. No unwinding starts in a linkage table: LLD, unlike GNU ld, describes
        // none.
        .flag("-fno-plt")
        .flag("-fvisibility=hidden")
        .compile("antiphon_shim");
    for argument in [
        // A library in whose code threads may wait must not be unloaded.
        "-Wl,-z,nodelete",
        // No lazy binding inside a lock.
        "-Wl,-z,now",
        "-Wl,-z,defs",
        // The libraries of `dlsym` and the C library's thread functions before version 2.34; from
        // that version on these are empty. Named, because a reference to the old version doesn't
        // name them.
        "-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
