//! Boosts: a loop runs before all others while its timer is overdue, and no longer.
//!
//! A loop with much best-effort work has used its share by the time its timer is due, so a fair
//! scheduler runs others first. Here one thread, the [`Helper`], which runs before all threads that
//! share time, sleeps until the next release of any loop. If the loop has not dispatched that
//! timer, the helper makes the loop run before all others too: the loop ends its present piece of
//! work, dispatches its timers, polls, and is lowered. The kernel does not charge the loop for that
//! time; the loop [gives it back](Debt).
//!
//! # Protocol
//!
//! | word of a [seat](Place) | written by | meaning |
//! |---|---|---|
//! | `thread` | the loop | the thread of the seat; 0: the seat is free |
//! | `release` | the loop | when its next timer is due; never; or that it leaves |
//! | `polls`, `owed` | the loop, before `release` | how often it has said that, and what it owes |
//! | `raised` | the helper | the thread is raised, or about to be |
//! | `raises`, `borrowed`, … | the helper | the account |
//!
//! | helper's state | it sees | it does | then |
//! |---|---|---|---|
//! | lowered | `release` to come | sleeps until then | lowered |
//! | lowered | `release` has come | says `raised`, looks once more, raises | raised |
//! | lowered | the same, and `owed` beyond the threshold | counts `share` | barred |
//! | raised | `release` to come, or that it leaves | lowers | lowered |
//! | raised | the slack of CPU time is used, and no poll | lowers, counts `overrun` | paused |
//! | raised | that is not used for ten slacks | lowers, counts `slept` | paused |
//! | raised | the slack is used, by polls, and too much is owed | lowers, counts `share` | barred |
//! | raised | the slack is used, and there were polls | notes it: a new slack | raised |
//! | barred | another poll | | lowered |
//! | paused | another poll | | lowered |
//! | paused | the pause is over, and no poll | raises it, behind others | raised behind |
//! | raised behind | as raised; or a poll, and `release` has come | lowers, raises | raised |
//!
//! - BOOST-1 (no raise is left over): the loop writes `release` and then reads `raised`, the helper
//!   writes `raised` and then reads `release`, each with a fence in between. So when the helper is
//!   about to raise a loop which dispatches at that moment, either the helper sees the new release,
//!   or the loop sees `raised`, rings, and is lowered.
//! - BOOST-2: only the helper lowers. A loop that lowers itself may be raised in between, for a
//!   release that it has just dispatched; it would stay raised until its next release.
//! - BOOST-3: a seat is given up when `raised` is not set, after `release` says that the loop
//!   leaves. So no thread is raised for a seat that has another owner by then, and a thread that
//!   leaves shares time.
//! - BOOST-4: a loop that owes more than the threshold is not raised. The time it was lent after
//!   its last poll is included, so a loop whose timers alone are too much gains that, once. A loop
//!   that has dispatched a timer and tells its next release has not overrun: a loop with many
//!   timers that are due is raised for them all, and other late loops wait, up to that threshold.
//! - BOOST-5: the helper lowers all loops when it ends, for whatever reason.
//! - BOOST-6: a loop that overruns or sleeps, and does not poll, is paused: for a fourth of the
//!   slack, then for twice as long each time. So a callback of `t` slacks that never polls runs
//!   raised for `n`, where `n + (2^(n-1) - 1) / 4` is no more than `t`: 7 of 25, 9 of 100. Never
//!   raising it again would be too little. The CPU time of a thread includes that of interrupts and
//!   of a hypervisor, if the kernel does not account for it; and a loop that is kept from running
//!   by real-time threads of others looks as if it slept. A loop that did neither would wait for
//!   its turn. After a pause the loop is raised behind others, until it polls: these wait for its
//!   first slack only. A loop that had no CPU time at all behind them is paused no longer than
//!   before.
//! - BOOST-7: if the helper checks later than it wanted to, that delay does not count as sleep of a
//!   loop. The helper runs before all loops, so the cause of its delay may have delayed them, too.
//!
//! A process leaves nothing behind: its threads end with it, and threads that they start while they
//! are raised are not raised. A loop that executes another program (`execve`) while it is raised
//! would stay raised, so it must leave first. A process that is stopped (`SIGSTOP`) continues where
//! it was, the helper first.

mod borrower;
mod debt;
mod helper;
mod seats;
#[cfg(test)]
mod tests;
mod vigil;

pub use borrower::{Borrower, Own, Times};
pub use debt::Debt;
pub use helper::{Helper, Raise};
pub use seats::{Boosts, Counts, Place};
pub use vigil::{NEVER, Vigil};
