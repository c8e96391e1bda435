//! The bare-metal image: the kernel, the runtime, and programs that test and measure both.
//!
//! `antiphon-lab metal --program NAME` builds it and runs it in QEMU.
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(not(antiphon_image))]
fn main() {
    eprintln!("this program is an image for bare metal: `antiphon-lab metal` builds and runs it");
    std::process::exit(2);
}

#[cfg(antiphon_image)]
mod image {
    use antiphon_metal::kernel::cpu;
    use antiphon_metal::println;
    use antiphon_metal::x86::power::Outcome;

    antiphon_metal::program!(main);

    fn main() -> Outcome {
        println!("cpus={} nodes={}", cpu::count(), cpu::nodes());
        Outcome::Passed
    }
}
