//! Links the image as the kernel says: by its script, without a C library. Only for an image: the
//! flag comes with `antiphon-lab metal`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(antiphon_image)");
    if env::var_os("CARGO_CFG_ANTIPHON_IMAGE").is_none() {
        return;
    }
    let arguments = env::var("DEP_ANTIPHON_METAL_LINK").expect("antiphon-metal says how");
    for argument in arguments.split(' ') {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
