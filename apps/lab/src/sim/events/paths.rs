//! The lengths of the bare-metal kernel's paths, in instructions, as they were counted in QEMU.
//!
//! `docs/results/metal-paths.json` is what `antiphon-lab metal --cpus 2 --exact --program paths
//! --json` printed; `docs/metal.md` says what each figure is. It is embedded when the command is
//! built. A figure is from a sender to a destination; here it is divided between the two. What both
//! have in common with a bare interrupt is the simulated machine's: the interrupt's own cost.

use std::sync::LazyLock;

use antiphon_sim::Paths;
use serde_json::Value;

static RECORD: &str = include_str!("../../../../../docs/results/metal-paths.json");

/// The lengths, read once.
pub static LENGTHS: LazyLock<Lengths> = LazyLock::new(|| Lengths::read(RECORD));

/// The number of lines that a wake moves there and back: the word of the CPU's inbox, and the link
/// of the thread that is put into it (`inbox` of `antiphon-wakeup`).
const LINES: u32 = 2;
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
    fn read(record: &str) -> Self {
        let record: Value = serde_json::from_str(record).expect("JSON");
        let figure = |name: &str| {
            let length = record["figures"][name].as_u64().and_then(|n| u32::try_from(n).ok());
            length.unwrap_or_else(|| panic!("no figure {name} in the record of paths"))
        };
        let (sent, raw) = (figure("icr_write"), figure("raw_ipi"));
        let ends = |whole: &str, send: &str| {
            let sender = figure(send) - sent;
            Ends { sender, destination: figure(whole) - raw - sender }
        };
        let wake = ends("condvar_running", "condvar_send");
        Self {
            wake: Paths {
                wake: wake.sender,
                run: wake.destination,
                lines: LINES,
                sleep_cost_ns: SLEEP_COST_NS,
            },
            message: ends("message_body", "unicast_send"),
            broadcast: ends("broadcast_last", "broadcast_send"),
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
            "message_body": 105, "unicast_send": 60, "broadcast_last": 101, "broadcast_send": 23
        } }"#;
        let Lengths { wake, message, broadcast } = Lengths::read(record);
        assert_eq!((wake.wake, wake.run), (97, 84));
        assert_eq!(message, Ends { sender: 40, destination: 40 });
        assert_eq!(broadcast, Ends { sender: 3, destination: 73 });
    }

    #[test]
    fn the_record_is_of_two_cpus_and_exact() {
        let record: Value = serde_json::from_str(RECORD).expect("JSON");
        assert_eq!((&record["cpus"], &record["exact"]), (&2.into(), &true.into()));
        let Lengths { wake, message, .. } = *LENGTHS;
        assert!(wake.wake + wake.run > message.sender + message.destination);
    }
}
