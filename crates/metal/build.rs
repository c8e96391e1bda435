//! Declares the flag of an image: `--cfg antiphon_image`. Without it this crate is a library that
//! is tested on the host, and defines none of the symbols that a host has already.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(antiphon_image)");
}
