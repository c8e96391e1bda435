//! The programs of the image, by name.
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
//! | `exhaust` | threads are created until memory is used up: a failure takes nothing |
//! | `fault`, `overflow`, `overflow-idle`, `panic` | end in a report and a failure's status |

mod blocks;
mod broadcasts;
mod channel;
mod exhaust;
mod faults;
mod fibonacci;
mod fork_join;
mod hello;
mod herds;
mod legion;
mod messages;
mod packets;
mod parts;
mod paths;
mod percpu;
mod pool;
mod prompt;
mod sender;
mod shortcuts;
mod stress;
mod table;
mod threads;
mod trial;

use antiphon_metal::kernel::command_line;
use antiphon_metal::println;
use antiphon_metal::x86::power::Outcome;

/// Runs the program that the command line names.
pub fn run() -> Outcome {
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
        "exhaust" => exhaust::run(),
        "overflow" => faults::overflow(),
        "overflow-idle" => faults::overflow_idle(),
        "panic" => faults::panic(),
        other => {
            println!(
                "no program `{other}`: hello, stress, paths, table, channel, threads, messages, \
                 fork-join, packets, legion, exhaust, fault, overflow, overflow-idle, panic"
            );
            Outcome::Misused
        }
    }
}
