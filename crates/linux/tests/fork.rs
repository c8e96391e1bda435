//! Tests that the child of any kind of fork has a new epoch, wiped nodes and its own thread id.

mod support;

use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Atomic, Platform};
use support::{FORKS, Node, arena, in_child};

/// The checks in a child. They may run in a signal handler: no allocation.
fn child_stands_alone(parent: (u32, u32, Node)) -> bool {
    let (epoch, thread, node) = parent;
    let own = Linux::epoch();
    let high = arena().high_water();
    (1..=1023).contains(&own)
        && own != epoch
        && own == Linux::epoch()
        && Linux::thread().0 != thread
        && Linux::alive(Linux::thread())
        && arena().resolve(node.id).is_none()
        && arena().resolve_index(node.id.index()).is_none()
        && node.waiter.generation.load(Relaxed) == 0
        && node.waiter.wants.load(Relaxed) == 0
        && arena().take().is_some_and(|id| {
            id.index() > high && id.epoch() == own && arena().resolve(id).is_some()
        })
}

fn parent() -> (u32, u32, Node) {
    // One cached and one in use: neither may reach the child.
    let cached = Node::take();
    let node = Node::take();
    node.waiter.wants.store(7, Relaxed);
    cached.give();
    (Linux::epoch(), Linux::thread().0, node)
}

#[test]
fn a_child_stands_alone() {
    let parent = parent();
    for (name, fork) in FORKS {
        assert!(in_child(fork, || child_stands_alone(parent)), "after {name}");
    }
    let (epoch, thread, node) = parent;
    assert_eq!((epoch, thread), (Linux::epoch(), Linux::thread().0));
    assert_eq!(node.waiter.wants.load(Relaxed), 7, "the parent keeps its own");
    node.give();
}

#[test]
fn a_grandchild_differs_from_both() {
    let (epoch, _, node) = parent();
    for (name, fork) in FORKS {
        let stood = in_child(fork, || {
            let child = Linux::epoch();
            // Directly, and with another fork in between before any thread has read the epoch.
            in_child(fork, || Linux::epoch() != child)
                && in_child(fork, || in_child(fork, || Linux::epoch() != child))
                && child != epoch
        });
        assert!(stood, "after {name}");
    }
    node.give();
}

#[test]
fn children_of_busy_threads_stand_alone() {
    let threads: Vec<_> = (0..4)
        .map(|turn| {
            thread::spawn(move || {
                (0..20).all(|_| {
                    let parent = parent();
                    let fork = FORKS[turn % FORKS.len()].1;
                    let stood = in_child(fork, || child_stands_alone(parent));
                    parent.2.give();
                    stood
                })
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|stood| stood)));
}

#[test]
fn a_vfork_child_shares_everything() {
    let parent = parent();
    let (epoch, thread, node) = parent;
    // The child of a `vfork` runs on the parent's stack while the parent is suspended. The test
    // uses `clone` with a separate stack, because Rust does not promise that a second return from
    // `vfork` works.
    static mut STACK: [u128; 4096] = [0; 4096];
    extern "C" fn child(node: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the parent's node, alive while it waits.
        let (epoch, thread, node) = unsafe { *node.cast::<(u32, u32, Node)>() };
        let shared = Linux::epoch() == epoch
            && Linux::thread().0 == thread
            && Linux::alive(Linux::thread())
            && arena().resolve(node.id).is_some();
        i32::from(!shared)
    }
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let argument = (&raw const parent).cast_mut().cast();
    // SAFETY: only this child uses the stack, and the parent waits until it has ended.
    let pid = unsafe { libc::clone(child, (&raw mut STACK).add(1).cast(), flags, argument) };
    assert!(pid > 0 && support::wait_for(pid));
    assert_eq!((epoch, thread), (Linux::epoch(), Linux::thread().0));
    node.give();
}
