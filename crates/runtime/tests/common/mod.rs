//! All to all: each thread posts to each other thread, and counts what it receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use antiphon_linux::Linux;
use antiphon_runtime::message::{Actions, Mailbox, Message, NotPosted, Park};

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Tally {
    /// Number of delivered messages.
    pub delivered: u64,
    /// Number of messages that were not the next of their poster, because some were lost or
    /// delivered twice.
    pub out_of_order: u64,
    /// Number of posts that found no room.
    pub refused: u64,
}

/// For each poster, the number of the next message that one thread expects from it.
type Expected = Vec<AtomicU64>;

struct Counts {
    expected: Vec<Expected>,
    delivered: AtomicU64,
    out_of_order: AtomicU64,
}

/// `threads` threads post `each` messages to each thread, also to themselves, through mailboxes for
/// `capacity`, and alternate that with running received messages.
pub fn all_to_all(threads: usize, each: u64, capacity: usize) -> Tally {
    let expected = || (0..threads).map(|_| AtomicU64::new(0)).collect();
    let counts = Arc::new(Counts {
        expected: (0..threads).map(|_| expected()).collect(),
        delivered: AtomicU64::new(0),
        out_of_order: AtomicU64::new(0),
    });
    let actions = Actions::<Linux>::new(1);
    let counted = counts.clone();
    let count = move |[from, to, number]: [u64; 3]| {
        // Relaxed: only one thread runs the messages posted to `to`.
        let next = &counted.expected[to as usize][from as usize];
        if next.load(Relaxed) != number {
            counted.out_of_order.fetch_add(1, Relaxed);
        }
        next.store(number + 1, Relaxed);
        counted.delivered.fetch_add(1, Relaxed);
    };
    let action = actions.register(count).expect("room for one");
    let mailboxes: Vec<_> =
        (0..threads).map(|_| Mailbox::<Linux, Park<Linux>>::new(&actions, capacity)).collect();
    let senders: Vec<_> = mailboxes.iter().map(Mailbox::sender).collect();
    let refused = AtomicU64::new(0);
    thread::scope(|scope| {
        for (from, mut mailbox) in mailboxes.into_iter().enumerate() {
            let (senders, refused) = (&senders, &refused);
            scope.spawn(move || {
                let mut came = 0;
                for number in 0..each {
                    for (to, sender) in senders.iter().enumerate() {
                        let payload = [from as u64, to as u64, number];
                        let message = Message { action, payload };
                        while let Err(NotPosted::Full(_)) = sender.post(message) {
                            refused.fetch_add(1, Relaxed);
                            came += u64::from(mailbox.poll().messages);
                            thread::yield_now();
                        }
                    }
                    came += u64::from(mailbox.poll().messages);
                }
                while came < each * senders.len() as u64 {
                    came += u64::from(mailbox.wait(None).messages);
                }
                assert!(mailbox.close().is_empty(), "more than was posted");
            });
        }
    });
    let all = counts.expected.iter().flatten();
    assert!(all.into_iter().all(|next| next.load(Relaxed) == each), "each poster's last came");
    Tally {
        delivered: counts.delivered.load(Relaxed),
        out_of_order: counts.out_of_order.load(Relaxed),
        refused: refused.load(Relaxed),
    }
}
