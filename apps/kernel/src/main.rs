//! The bare-metal image: the kernel, the runtime, and programs that test and measure both.
//!
//! `antiphon-lab metal --program NAME` builds it and runs it in QEMU. The programs print lines
//! `name=value`, which the host command reads.
//!
//! | program | what it does |
//! |---|---|
//! | `hello` | prints the machine's CPUs, nodes and memory, from a thread of each CPU |
//! | `stress` | tests mutex, condition variable, event, barrier, messages: totals must be exact |
//! | `paths` | measures interrupts, messages and wakes: with `--exact`, in instructions |
//! | `channel` | files, lines and the time of day, by the host: with `--share` |
//! | `table` | measures each way to tell other CPUs: one of them, and all |
//! | `threads` | what is promised of threads and memory: creation, moves, turns, nodes |
//! | `messages` | the forms of messages, with actions that are unregistered in flight |
//! | `fork-join`, `packets` | the runtime's pool, with a worker on each CPU |
//! | `legion` | processors asleep until a task is published: condition variables and messages |
//! | `fault`, `overflow`, `panic` | end in a report and a status that is not zero |
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(antiphon_image)]
extern crate alloc;

#[cfg(antiphon_image)]
mod blocks;
#[cfg(antiphon_image)]
mod broadcasts;
#[cfg(antiphon_image)]
mod channel;
#[cfg(antiphon_image)]
mod faults;
#[cfg(antiphon_image)]
mod fibonacci;
#[cfg(antiphon_image)]
mod fork_join;
#[cfg(antiphon_image)]
mod hello;
#[cfg(antiphon_image)]
mod herds;
#[cfg(antiphon_image)]
mod legion;
#[cfg(antiphon_image)]
mod messages;
#[cfg(antiphon_image)]
mod packets;
#[cfg(antiphon_image)]
mod parts;
#[cfg(antiphon_image)]
mod paths;
#[cfg(antiphon_image)]
mod pool;
#[cfg(antiphon_image)]
mod prompt;
#[cfg(antiphon_image)]
mod sender;
#[cfg(antiphon_image)]
mod stress;
#[cfg(antiphon_image)]
mod table;
#[cfg(antiphon_image)]
mod threads;
#[cfg(antiphon_image)]
mod trial;

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
        "channel" => channel::run(),
        "table" => table::run(options),
        "threads" => threads::run(),
        "messages" => messages::run(options),
        "fork-join" => fork_join::run(options),
        "packets" => packets::run(options),
        "legion" => legion::run(options),
        "fault" => faults::fault(),
        "overflow" => faults::overflow(),
        "panic" => faults::panic(),
        other => {
            println!(
                "no program `{other}`: hello, stress, paths, table, channel, threads, messages, \
                 fork-join, packets, legion, fault, overflow, panic"
            );
            Outcome::Misused
        }
    }
}
