//! The bare-metal image: the kernel, the runtime, and programs that test and measure both.
//!
//! `antiphon-lab metal --program NAME` builds it and runs it in QEMU. The programs print lines
//! `name=value`, which the host command reads.
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(antiphon_image)]
extern crate alloc;

#[cfg(antiphon_image)]
mod programs;

#[cfg(not(antiphon_image))]
fn main() {
    eprintln!("this program is an image for bare metal: `antiphon-lab metal` builds and runs it");
    std::process::exit(2);
}

#[cfg(antiphon_image)]
antiphon_metal::program!(programs::run);
