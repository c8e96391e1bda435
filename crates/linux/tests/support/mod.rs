//! Helpers for tests: nodes, deadlines, child processes.
#![allow(dead_code, reason = "each test uses a part of it")]

use antiphon_linux::Linux;
use antiphon_platform::{
    Arena, Clock, Clocks as _, Deadline, Platform, Waiter, WaiterId, WaiterRef,
};

/// The nodes.
pub fn arena() -> &'static Arena<Linux> {
    // SAFETY: each thread writes only to nodes that it has taken.
    unsafe { Linux::arena() }
}

/// A node in use, as a waiter has it.
#[derive(Clone, Copy)]
pub struct Node {
    pub id: WaiterId,
    pub waiter: &'static Waiter<Linux>,
}

impl Node {
    pub fn take() -> Self {
        let id = arena().take().expect("there are nodes");
        Self { id, waiter: arena().resolve(id).expect("a node in use resolves") }
    }

    pub fn reference(self) -> WaiterRef {
        arena().reference(self.id.index()).expect("a node in use can be woken")
    }

    pub fn give(self) {
        arena().give(self.id);
    }
}

/// So far away that passing it means a lost wake, not a slow machine.
pub fn never() -> Option<Deadline> {
    Some(after(Clock::Monotonic, 60_000_000_000))
}

pub fn after(clock: Clock, ns: u64) -> Deadline {
    Deadline { clock, ns: Linux::now(clock) + ns }
}

/// A way to copy a process.
pub type Fork = fn() -> libc::pid_t;

/// All ways, with their names.
pub const FORKS: [(&str, Fork); 3] =
    [("fork", fork), ("_Fork", underscore_fork), ("clone", raw_clone)];

fn fork() -> libc::pid_t {
    // SAFETY: the child of a program with threads calls only what a signal handler may.
    unsafe { libc::fork() }
}

fn underscore_fork() -> libc::pid_t {
    // SAFETY: the name is a zero-terminated string. glibc 2.34 and later have the function.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr()) };
    if found.is_null() {
        return raw_clone();
    }
    // SAFETY: that is its type.
    let fork: extern "C" fn() -> libc::pid_t = unsafe { core::mem::transmute(found) };
    fork()
}

fn raw_clone() -> libc::pid_t {
    // SAFETY: without CLONE_VM and without a stack it is a fork that runs no handlers.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
}

/// Runs `f` in a child made by `fork`; returns whether it returned `true` there.
pub fn in_child(fork: Fork, f: impl FnOnce() -> bool) -> bool {
    match fork() {
        0 => {
            // A child that hangs is killed, which is not success.
            // SAFETY: takes a number.
            unsafe { libc::alarm(60) };
            // Unwound further, a panic would end the child's only thread, and the child with
            // success.
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
            // SAFETY: ends the process without running anything else.
            unsafe { libc::_exit(if matches!(ended, Ok(true)) { 0 } else { 1 }) }
        }
        child => {
            assert!(child > 0, "no child");
            wait_for(child)
        }
    }
}

/// Waits for `child`; returns whether it exits with 0.
pub fn wait_for(child: libc::pid_t) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: the status is a writable local.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if waited == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        assert!(waited == -1 && errno() == libc::EINTR, "the child is lost");
    }
}

pub fn errno() -> i32 {
    // SAFETY: this thread's `errno`.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: i32) {
    // SAFETY: this thread's `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// An action of a [`filter`]: the call fails.
pub const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

/// Makes the kernel do `action` for each of `calls` from now on, in this thread and its children.
pub fn filter(calls: &[libc::c_long], action: u32) -> bool {
    filter_all(calls, action, libc::SECCOMP_RET_ALLOW)
}

/// Like [`filter`], with the action `other` for all other calls.
pub fn filter_all(calls: &[libc::c_long], action: u32, other: u32) -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    // The first word of the filter's input is the number of the call.
    let mut program = vec![step(LOAD, 0, 0)];
    for (place, call) in calls.iter().enumerate() {
        let to_action = u8::try_from(calls.len() - place).expect("a few calls");
        program.push(step(EQUAL, to_action, u32::try_from(*call).expect("a call's number")));
    }
    program.push(step(RETURN, 0, other));
    program.push(step(RETURN, 0, action));
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).expect("a short program"),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: takes numbers; then a program that lives for the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}
