//! `bench`: our subjects beside their peers, in one interleaved run.
//!
//! | module | does |
//! |---|---|
//! | [`locks`] | the verbs of locks |
//! | [`events`] | the verb of wake-ups |
//! | [`event_loop`] | the verb of event loops that must be on time |
//! | [`packets`] | the verb of pools that process packets |
//! | [`options`] | the verb of pools that run chains of tasks |
//! | [`mix`] | the verb of conferences, whose parts wait for each other and for the clock |
//! | [`thesis`] | the verb that asks whether one policy is best for all of these |
//! | [`tasks`] | the verb of tasks that do nothing |
//! | [`serve`] | the verb of servers |
//! | [`clock`] | the verb of timestamps |
//! | [`benchmark`] | the skeleton of all verbs, with the traits that a family implements |
//! | [`settings`] | the options that all verbs share |
//! | [`rounds`] | the turns of the subjects that are compared |
//! | [`repeat`] | a repetition in its own process, with a limit on its time |
//! | [`report`], [`columns`] | rows of figures, as tables |
//! | [`ratio`] | paired ratios of subjects |
//! | [`page`] | drawn distributions |
//! | [`pools`] | code shared by the verbs of pools |
//! | [`visit`] | subjects that are types, by their names |
//! | [`usage`] | what the process has used |
//! | [`neighbours`], [`others`] | other users of the machine: those that we start, and all others |

mod benchmark;
pub mod clock;
mod columns;
pub mod event_loop;
pub mod events;
pub mod locks;
pub mod mix;
mod neighbours;
pub mod options;
mod others;
pub mod packets;
mod page;
mod pools;
mod ratio;
mod repeat;
mod report;
mod rounds;
pub mod serve;
mod settings;
pub mod tasks;
pub mod thesis;
mod usage;
mod visit;

use std::process::ExitCode;

use antiphon_linux::end_with_parent;
use antiphon_report::failure::Failure;
use serde::{Deserialize, Serialize};

use crate::compete::process::tell;
pub use locks::Family;
pub use settings::check_seconds;

/// The hidden verb that carries out one repetition.
pub const REPETITION: &str = "__repetition";
/// The hidden verb of a busy neighbour.
pub const NEIGHBOUR: &str = neighbours::VERB;

/// The order for one repetition.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// A repetition of a lock.
    Lock(locks::Order),
    /// A repetition of a wake-up mechanism.
    Event(events::Order),
    /// A repetition of a pool.
    Packets(packets::Order),
    /// A repetition of a pool that runs chains.
    Options(options::Order),
    /// A repetition of conferences.
    Mix(mix::Order),
    /// A repetition of all of the above at once.
    Mixed(thesis::Order),
    /// A repetition of tasks.
    Task(tasks::Order),
    /// A repetition of a server, with its clients.
    Serve(serve::Order),
    /// The server of such a repetition.
    Server(serve::ServerOrder),
    /// A repetition of programs that compete for a CPU.
    Loop(event_loop::Order),
    /// A program of such a repetition.
    Program(event_loop::ProgramOrder),
}

/// Carries out one repetition and prints its outcome.
///
/// # Errors
///
/// If `order` is not an order of `bench`.
pub fn repetition(order: &str) -> Result<ExitCode, Failure> {
    end_with_parent();
    let order = serde_json::from_str(order).map_err(Failure::arguments)?;
    match order {
        Order::Lock(order) => answer(locks::measure(&order)),
        Order::Event(order) => answer(events::measure(&order)),
        Order::Packets(order) => answer(packets::measure(&order)),
        Order::Options(order) => answer(options::measure(&order)),
        Order::Mix(order) => answer(mix::measure(&order)),
        Order::Mixed(order) => answer(thesis::measure(&order)),
        Order::Task(order) => answer(tasks::measure(&order)),
        Order::Serve(order) => answer(serve::measure(&order)),
        Order::Server(order) => {
            serve::serve(&order).map(|()| ExitCode::SUCCESS).map_err(Failure::measured)
        }
        Order::Loop(order) => answer(event_loop::measure(&order)),
        Order::Program(order) => {
            event_loop::be(order).map(|()| ExitCode::SUCCESS).map_err(Failure::measured)
        }
    }
}

/// Prints an outcome in the form that [`repeat`] reads.
fn answer(outcome: Result<impl Serialize, String>) -> Result<ExitCode, Failure> {
    let outcome = outcome.map_err(Failure::arguments)?;
    tell(&outcome).map_err(Failure::measured)?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps CPUs busy until its parent ends.
///
/// # Errors
///
/// Never fails; the type is that of every verb.
pub fn neighbour(parent: u32, threads: u16) -> Result<ExitCode, Failure> {
    neighbours::burn(parent, threads)
}
