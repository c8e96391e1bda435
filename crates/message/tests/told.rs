//! Regression tests of notifications between threads.

use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use antiphon_message::{Actions, EventFd, MailboxWith, Message, NotPosted, deadline_after};

/// Longer than every event here takes, unless it never happens.
const LONG: Duration = Duration::from_secs(5);

fn readable(fd: impl AsFd, timeout: Duration) -> bool {
    let mut file = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one `pollfd`, ours to write.
    unsafe { libc::poll(&raw mut file, 1, timeout.as_millis() as i32) == 1 }
}

/// The owner dozes, waits for its files, and polls once.
#[test]
fn a_poster_that_waits_for_room_is_told_by_an_owner_that_dozes_off_next() {
    let actions = Actions::new(1);
    let action = actions.register(|_| {}).expect("room");
    let notify = EventFd::new().expect("a file");
    let mut mailbox = MailboxWith::with_notify(&actions, 2, notify);
    let sender = mailbox.sender();
    let poster = thread::spawn(move || -> Result<(), NotPosted> {
        let deadline = deadline_after(2 * LONG);
        (0..20).try_for_each(|number| {
            sender.post_wait(Message { action, payload: [number, 0, 0] }, Some(deadline))
        })
    });
    let mut came = 0;
    while came < 20 {
        if let Some(doze) = mailbox.doze() {
            assert!(readable(doze.notifier(), LONG), "{came} came; the poster sleeps on");
        }
        came += mailbox.poll().messages;
    }
    assert_eq!(poster.join().expect("no panic"), Ok(()));
}
