//! A fiber that is unwound while it waits, as by dropping a suspended coroutine, aborts the
//! process: otherwise its waiter would stay on a list, with the address of a mutex that may be
//! dropped. No unsafe code is needed to write such a runtime.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use antiphon::{Condvar, Mutex};
use antiphon_linux::fiber::{Hooks, Sleep, install};

/// Set in the process that must be aborted.
const CHILD: &str = "ANTIPHON_TEST_DROPPED_FIBER";
const SIGABRT: i32 = 6;

thread_local! {
    static FIBER: Cell<bool> = const { Cell::new(false) };
}

static HOOKS: Hooks = Hooks {
    current: || FIBER.get().then_some(1),
    suspend: |_: u64, _: Sleep| resume_unwind(Box::new("dropped")),
    resume: |_| {},
    give_way: || false,
};

/// Two fibers are dropped in their waits, then the mutex is, and then both are notified.
fn drop_fibers() {
    assert!(install(&HOOKS).is_ok());
    let changed = Condvar::new();
    let mutex = Box::new(Mutex::new(0_u64));
    for _ in 0..2 {
        FIBER.set(true);
        let _ = catch_unwind(AssertUnwindSafe(|| changed.wait(&mut mutex.lock())));
        FIBER.set(false);
    }
    drop(mutex);
    changed.notify_all();
}

#[test]
fn a_fiber_that_is_dropped_in_a_wait_aborts() {
    if env::var_os(CHILD).is_some() {
        return drop_fibers();
    }
    let itself = env::current_exe().expect("a path");
    let test = "a_fiber_that_is_dropped_in_a_wait_aborts";
    let child = Command::new(itself).args(["--exact", test]).env(CHILD, "1").output();
    let status = child.expect("a child").status;
    assert_eq!(status.signal(), Some(SIGABRT), "{status}");
}
