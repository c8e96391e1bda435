//! The thread-local state of this crate. Code on a fiber's stack asks for it; if fibers may move,
//! anew each time (MIGRATE-3).
//!
//! This is the lowest module: it names no fiber, pool or event loop. Their objects are addresses
//! here. For each address, one module sets and follows it, and knows the type.

use std::cell::Cell;
use std::ptr::NonNull;

use antiphon_linux::Linux;
use antiphon_runtime::fork::Forks;

/// The address of an object of a higher layer.
pub(crate) type Address = Cell<Option<NonNull<()>>>;

/// The state of a thread. Accessed only by that thread, and the signal handlers on it.
pub(crate) struct Thread {
    /// The pool's fiber that runs on it: a control block of `fiber::control`.
    pub(crate) fiber: Address,
    /// The external fiber that runs on it: a `fiber::external::Header`.
    pub(crate) external: Address,
    /// The host of its fibers, if it is a thread of a pool with fibers: a `fiber::Host`.
    pub(crate) host: Address,
    /// Its worker, in a form without a type: a `worker::Known`.
    pub(crate) here: Address,
    /// The forks that it has made and not begun.
    pub(crate) forks: Forks<Linux>,
    /// The number of nested tasks that it runs where they were spawned.
    pub(crate) nested: Cell<u32>,
    /// The number of tasks that it makes ready before the next recorded one.
    pub(crate) unrecorded: Cell<u32>,
    /// The number of checkpoints until its fiber reads the clock, and of steps that were ready.
    pub(crate) left: Cell<u32>,
    pub(crate) ready: Cell<u32>,
    /// Its free blocks.
    pub(crate) blocks: Lists,
}

/// Two lists of free blocks of memory for tasks. See `pool::blocks`.
pub(crate) struct Lists {
    /// The list that blocks are taken from and, while there is room, put on.
    pub(crate) loaded: Cell<Option<NonNull<u8>>>,
    /// A full list, or empty.
    pub(crate) full: Cell<Option<NonNull<u8>>>,
    /// The number of blocks for which `loaded` has room.
    pub(crate) room: Cell<u32>,
    /// Whether the lists are in use: not before the thread's first block, nor after its end.
    pub(crate) is_open: Cell<bool>,
}

impl Lists {
    const fn new() -> Self {
        Self {
            loaded: Cell::new(None),
            full: Cell::new(None),
            room: Cell::new(0),
            is_open: Cell::new(false),
        }
    }
}

impl Thread {
    /// The state of a thread that has done nothing yet. All of it is zero bytes.
    #[cfg_attr(
        all(feature = "migrating", any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "zero bytes are put there by the linker")
    )]
    const fn new() -> Self {
        Self {
            fiber: Cell::new(None),
            external: Cell::new(None),
            host: Cell::new(None),
            here: Cell::new(None),
            forks: Forks::new(),
            nested: Cell::new(0),
            unrecorded: Cell::new(0),
            left: Cell::new(0),
            ready: Cell::new(0),
            blocks: Lists::new(),
        }
    }
}

/// Runs `f` on the state of the calling thread. `f` must not wait.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    storage::with(f)
}

#[cfg(feature = "migrating")]
antiphon_linux::thread_state!(mod storage: super::Thread, super::Thread::new(), "antiphon_thread");

#[cfg(not(feature = "migrating"))]
mod storage {
    use super::Thread;

    thread_local! {
        static STATE: Thread = const { Thread::new() };
    }

    #[inline(always)]
    pub(super) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
        const { assert!(!std::mem::needs_drop::<Thread>()) };
        STATE.with(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_thread_has_a_state_of_its_own_that_is_nothing_at_first() {
        let is_new = || {
            with(|own| {
                own.fiber.get().is_none()
                    && own.host.get().is_none()
                    && own.here.get().is_none()
                    && own.blocks.loaded.get().is_none()
                    && own.nested.get() == 0
            })
        };
        assert!(is_new());
        with(|own| own.nested.set(7));
        assert!(thread::spawn(is_new).join().unwrap());
        assert_eq!(with(|own| own.nested.replace(0)), 7);
    }
}
