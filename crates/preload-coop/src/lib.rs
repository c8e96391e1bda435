//! `LD_PRELOAD` library that lets unmodified event loops share a CPU, on time and fairly; `antiphon
//! run --coop` preloads it.
//!
//! It replaces the functions in which an event loop waits (`epoll_wait`, `poll`, `select` and
//! similar), where the loop passes its CPU on to others of its domain ([`antiphon_coop::Domain`]);
//! or a helper raises the loop while it is late ([`antiphon_coop::Booster`]). The C library still
//! does the wait itself. `README.md` beside this crate says what the library does and what it
//! can't.
//!
//! | file | contents |
//! |---|---|
//! | `shim.c` | the functions; timeouts; what a cancellation may unwind |
//! | `entry` | the names of these functions, and the code that they call |
//! | `member` | a thread that is an event loop: its messages to others, and its counts |
//! | `settings` | the settings of this process |
//!
//! The library never prints, and installs no signal handler. It starts a thread only where loops
//! must be raised, and opens files only when it has found a loop.

mod entry;
mod member;
mod settings;
