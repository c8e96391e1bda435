//! The kernel's accounts of threads.

use antiphon_linux::{account, cpu_time_ns};
use antiphon_platform::ThreadId;
use antiphon_runtime::coop::{Accounts, Doing, Seen};

/// The kernel's own accounts.
#[derive(Debug)]
pub(super) struct System;

impl Accounts for System {
    fn own_ns(&mut self) -> u64 {
        cpu_time_ns()
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        let told = account(thread);
        let doing = match told.runs {
            Some(true) => Doing::Runs,
            Some(false) => Doing::Sleeps,
            None => Doing::Unknown,
        };
        Seen { ran_ns: told.ran_ns, doing }
    }
}
