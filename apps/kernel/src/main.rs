//! The bare-metal image: the kernel, the runtime, and programs that test and measure both.
//!
//! `antiphon-lab metal --program NAME` builds it and runs it in QEMU. The programs print lines
//! `name=value`, which the host command reads.
//!
//! | program | what it does |
//! |---|---|
//! | `hello` | says what machine it is on, from a thread of each CPU |
//! | `stress` | mutex, condition variable, event, barrier, messages: totals must be exact |
//! | `paths` | measures interrupts, messages and wakes: with `--exact`, in instructions |
//! | `fault`, `overflow`, `panic` | end in a report and a status that is not zero |
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(antiphon_image)]
extern crate alloc;

#[cfg(antiphon_image)]
mod broadcasts;
#[cfg(antiphon_image)]
mod faults;
#[cfg(antiphon_image)]
mod hello;
#[cfg(antiphon_image)]
mod paths;
#[cfg(antiphon_image)]
mod prompt;
#[cfg(antiphon_image)]
mod stress;

#[cfg(not(antiphon_image))]
fn main() {
    eprintln!("this program is an image for bare metal: `antiphon-lab metal` builds and runs it");
    std::process::exit(2);
}

#[cfg(antiphon_image)]
antiphon_metal::program!(program);

#[cfg(antiphon_image)]
fn program() -> antiphon_metal::x86::power::Outcome {
    use antiphon_metal::kernel::command_line;
    use antiphon_metal::println;
    use antiphon_metal::x86::power::Outcome;

    let options = command_line::options();
    match options.get("program").unwrap_or("hello") {
        "hello" => hello::run(),
        "stress" => stress::run(options),
        "paths" => paths::run(options),
        "fault" => faults::fault(),
        "overflow" => faults::overflow(),
        "panic" => faults::panic(),
        other => {
            println!("no program `{other}`: hello, stress, paths, fault, overflow, panic");
            Outcome::Misused
        }
    }
}
