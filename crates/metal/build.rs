//! Declares the flag of an image, `--cfg antiphon_image`, and passes the linker's arguments to the
//! build scripts of images, in `DEP_ANTIPHON_METAL_LINK`, with a blank between them.
//!
//! Without the flag this crate is a library that is tested on the host, and defines no symbol that
//! a host program already has.

use std::env;

const ARGUMENTS: [&str; 10] = [
    "-nostartfiles",
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=0x1000",
    "-Wl,-z,noexecstack",
    "-Wl,-z,norelro",
    "-Wl,--gc-sections",
    "-Wl,--no-eh-frame-hdr",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=image.ld");
    println!("cargo::rustc-check-cfg=cfg(antiphon_image)");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::metadata=link={} -Wl,-T,{folder}/image.ld", ARGUMENTS.join(" "));
}
