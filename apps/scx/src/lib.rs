//! The scheduler of sched_ext: its policy in C, its loader, and the service that gives processes
//! their pages.
//!
//! | file | contents |
//! |---|---|
//! | `bpf/antiphon.bpf.c` | the policy, in the kernel |
//! | `bpf/state.h`, `bpf/registration.h` | what it remembers; how threads get slots |
//! | `bpf/queues.h`, `bpf/releases.h` | queues of last-level caches; threads that become due |
//! | `bpf/hotplug.h` | CPUs that go and come back |
//! | `bpf/standing.h`, `bpf/groups.h` | what a thread has had, and tells; groups of threads |
//! | `bpf/weights.h` | weights of control groups |
//! | `bpf/told.h` | what waiters are told, and to which thread one gives its CPU |
//! | `bpf/spinning.h` | threads that spin and tell nothing |
//! | `shared` | records that both sides share |
//! | `llcs` | which CPUs share a last-level cache |
//! | `loader` | puts the policy into the kernel, and reads what it decides |
//! | `service` | connections of processes: a page for each |
//! | `intake` | takes connections, a bounded number at a time |
//! | `groups` | groups of users, by name |
//! | `server` | the program: loads, serves, and ends with the kernel's part |
//! | `vm/` | the init program of `cargo xtask vm`, with its cases |
//!
//! All but `shared`, `llcs`, `groups` and `intake` needs the feature `program`, which takes clang:
//! see `docs/sched.md`.

pub mod groups;
pub mod intake;
pub mod llcs;
#[cfg(feature = "program")]
pub mod loader;
#[cfg(feature = "program")]
pub mod server;
#[cfg(feature = "program")]
pub mod service;
pub mod shared;
