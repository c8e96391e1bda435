//! How the image is linked: by the kernel's script, without a C library. Only for an image: its
//! flag comes with `antiphon-lab metal`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(antiphon_image)");
    if env::var_os("CARGO_CFG_ANTIPHON_IMAGE").is_none() {
        return;
    }
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let script = format!("{root}/../../crates/metal/image.ld");
    println!("cargo::rerun-if-changed={script}");
    for argument in [
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
        &format!("-Wl,-T,{script}"),
    ] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
