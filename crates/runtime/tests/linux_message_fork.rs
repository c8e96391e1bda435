//! Tests that the child of a `fork`, which inherits its parent's doze, drops it safely.

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline, Notify, Parked};
use antiphon_runtime::message::{Actions, Mailbox, Park};

#[test]
fn a_parents_doze_takes_no_node_of_its_child() {
    let actions = Actions::<Linux>::new(1);
    let mut mailbox: Mailbox<Linux> = Mailbox::new(&actions, 1);
    let doze = mailbox.doze().expect("nothing there");
    // SAFETY: the child waits and allocates, which the C library allows after a fork, and then
    // ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number. Ends a hanging child.
        unsafe { libc::alarm(20) };
        drop(doze);
        let right = waits();
        // SAFETY: ends the process without running the parent's handlers.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    drop(doze);
    let mut status = -1;
    // SAFETY: `status` is ours to write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's waits have nodes of their own");
}

/// Returns whether a waiter gets a node, and so sleeps until its deadline: without a node it naps.
fn waits() -> bool {
    let park = Park::<Linux>::NEW;
    let tickets: [_; 3] = std::array::from_fn(|_| park.begin());
    tickets.into_iter().all(|ticket| {
        let ns = Linux::now(Clock::Monotonic) + 5_000_000;
        // SAFETY: the ticket is ours, and has not ended.
        let parked = unsafe { park.sleep(ticket, Some(Deadline { clock: Clock::Monotonic, ns })) };
        // SAFETY: the ticket is ours, and ends once.
        unsafe { park.end(ticket) };
        parked == Parked::TimedOut
    })
}
