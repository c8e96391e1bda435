//! Unmodified event loops that share a CPU, on time and fairly: `LD_PRELOAD` this library, as
//! `antiphon run --coop` does.
//!
//! It stands before the functions in which an event loop waits (`epoll_wait`, `poll`, `select` and
//! their like), and has the loop give its CPU away there: to others of its domain
//! ([`antiphon_coop::Domain`]), and with a helper that raises it while it is late
//! ([`antiphon_coop::Booster`]). The wait itself stays the C library's. `README.md` beside this
//! crate says what it does and what it can't.
//!
//! | file | what |
//! |---|---|
//! | `shim.c` | the functions; timeouts; what a cancellation may unwind |
//! | `entry` | the names of these functions, and the code that they call |
//! | `member` | a thread that is a loop: its messages to others, and its counts |
//! | `settings` | what this process was asked for |
//!
//! The library prints nothing, ever, and installs no signal handler. It starts a thread only where
//! loops are to be raised, and opens files only when it has found a loop.

mod entry;
mod member;
mod settings;
