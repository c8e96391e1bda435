//! The lengths of the bare-metal kernel's paths, in instructions, as they were counted in QEMU.
//!
//! `docs/results/metal-paths.json` is what `antiphon-lab metal --cpus 2 --exact --program paths
//! --json` printed; `docs/metal.md` says what each figure is. It is embedded when the command is
//! built. A figure is from a sender to a destination; here it is divided between the two. What both
//! have in common with a bare interrupt is the simulated machine's: the interrupt's own cost.

use std::sync::{LazyLock, OnceLock};

use antiphon_sim::Paths;
use serde_json::Value;

static RECORD: &str = include_str!("../../../../../docs/results/metal-paths.json");

/// The lengths that are simulated.
pub static LENGTHS: LazyLock<Lengths> =
    LazyLock::new(|| COUNTED.get().copied().unwrap_or_else(|| Lengths::read(RECORD)));

/// Lengths that this process has counted.
static COUNTED: OnceLock<Lengths> = OnceLock::new();

/// Simulates with these figures of `paths`, of two CPUs in an exact run, in place of the record.
/// Called before the first simulation.
///
/// # Panics
///
/// If a figure is missing.
pub fn take(figure: impl Fn(&str) -> Option<u64>) {
    let known = COUNTED.set(Lengths::of(figure));
    assert!(known.is_ok(), "lengths are counted once");
}

/// The number of lines of the run queue that a wake moves there and back: none. The CPU is halted,
/// and looks at the token of its last sleeper itself (TOKEN-3 of `antiphon-wakeup`); the token's
/// line moves in the simulation.
const LINES: u32 = 0;
/// What that kernel tells waiters that a sleep costs (`sleep_cost_ns` of its platform).
const SLEEP_COST_NS: u64 = 2_000;

/// Lengths of paths, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// `notify_one` until the waiter runs.
    pub wake: Paths,
    /// An action that is posted to one CPU.
    pub message: Ends,
    /// An action that all other CPUs run, by one command.
    pub broadcast: Ends,
    /// An action with a vector of its own.
    pub direct: Ends,
    /// From an action, which unblocks a thread of its own CPU, until the thread runs.
    pub unblock: Paths,
    /// `notify_all` of the kernel's own condition variable, until its CPU has woken the waiter,
    /// which runs.
    pub percpu: Ends,
}

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Before the interrupt is sent.
    pub sender: u32,
    /// From the handler's first instruction to the action's.
    pub destination: u32,
}

impl Lengths {
    /// The path of a thread that an interrupt of its own CPU wakes, from there until it runs. The
    /// waker is on the same CPU, so that no line of a run queue moves.
    pub fn woken_there(instructions: u32) -> Paths {
        Paths { wake: 0, run: instructions, lines: 0, sleep_cost_ns: SLEEP_COST_NS }
    }

    fn read(record: &str) -> Self {
        let record: Value = serde_json::from_str(record).expect("JSON");
        Self::of(|name| record["figures"][name].as_u64())
    }

    fn of(figure: impl Fn(&str) -> Option<u64>) -> Self {
        let figure = |name: &str| {
            let length = figure(name).and_then(|length| u32::try_from(length).ok());
            length.unwrap_or_else(|| panic!("no figure {name} of the paths"))
        };
        let (sent, raw) = (figure("icr_write"), figure("raw_ipi"));
        let ends = |whole: &str, send: &str| {
            let sender = figure(send) - sent;
            Ends { sender, destination: figure(whole) - raw - sender }
        };
        let wake = ends("condvar_running", "condvar_send");
        let message = ends("message_body", "unicast_send");
        let action = figure("message_body");
        Self {
            wake: Paths {
                wake: wake.sender,
                run: wake.destination,
                lines: LINES,
                sleep_cost_ns: SLEEP_COST_NS,
            },
            message,
            broadcast: ends("broadcast_last", "broadcast_send"),
            // It is posted by the interrupt alone.
            direct: Ends { sender: 0, destination: figure("direct_body") - raw },
            // All of it comes after the action's beginning.
            unblock: Self::woken_there(figure("unblock_running") - action),
            percpu: ends("percpu_running", "percpu_send"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_two_ends_and_the_interrupt() {
        let record = r#"{ "figures": {
            "icr_write": 20, "raw_ipi": 25, "condvar_running": 206, "condvar_send": 117,
            "message_body": 105, "unicast_send": 60, "broadcast_last": 101, "broadcast_send": 23,
            "direct_body": 55, "unblock_running": 245, "percpu_running": 240, "percpu_send": 60
        } }"#;
        let Lengths { wake, message, broadcast, direct, unblock, percpu } = Lengths::read(record);
        assert_eq!((wake.wake, wake.run), (97, 84));
        assert_eq!(message, Ends { sender: 40, destination: 40 });
        assert_eq!(broadcast, Ends { sender: 3, destination: 73 });
        assert_eq!(direct, Ends { sender: 0, destination: 30 });
        assert_eq!((unblock.wake, unblock.run), (0, 140));
        assert_eq!(percpu, Ends { sender: 40, destination: 175 });
    }

    #[test]
    fn the_record_is_of_two_cpus_and_exact() {
        let record: Value = serde_json::from_str(RECORD).expect("JSON");
        assert_eq!((&record["cpus"], &record["exact"]), (&2.into(), &true.into()));
        let Lengths { wake, message, .. } = *LENGTHS;
        assert!(wake.wake + wake.run > message.sender + message.destination);
    }
}
