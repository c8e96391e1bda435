//! Sets how the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // The version of the ABI; README.md says when it changes.
        "-Wl,-soname,libantiphon.so.0",
        // Code that a thread may be running must not be unmapped.
        "-Wl,-z,nodelete",
        // No lazy binding inside a lock.
        "-Wl,-z,now",
        "-Wl,-z,defs",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
