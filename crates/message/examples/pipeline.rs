//! A latency-critical pipeline by active messages: a source, three stages and a sink, each a thread
//! with a mailbox. Each item is a message; a stage does its work in the action and posts the result
//! to the next, waiting for room there. When all items are through, or a thread ends early, the
//! main thread is signalled, and signals all threads to stop.
//!
//! `cargo run --release -p antiphon-message --example pipeline`

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_message::{ActionId, Actions, Mailbox, Message, Sender, SignalId};

/// Number of items, and the time between two of them.
const ITEMS: u64 = 3_000;
const GAP: Duration = Duration::from_micros(100);

/// The work of a stage on an item.
type Stage = fn(u64) -> u64;

/// The stages that an item goes through, one after the other.
const STAGES: [(&str, Stage); 3] =
    [("decode", |item| item ^ 0x5a), ("scale", |item| item * 3), ("clip", |item| item.min(5_000))];

fn main() -> Result<(), Box<dyn Error>> {
    let actions = Actions::new(STAGES.len() + 1);
    let begin = Instant::now();

    // The main thread's mailbox, which is signalled when there is nothing left to wait for.
    let mut main = Mailbox::new(&actions, 1);
    let over = actions.register_signal(|| {})?;

    // The sink records the final item and its time in the pipeline.
    let (times, sum) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let (noted, summed, supervisor) = (times.clone(), sum.clone(), main.sender());
    let sink = actions.register(move |[item, posted_ns, _]| {
        summed.fetch_add(item, Relaxed);
        let mut times = noted.lock().unwrap();
        times.push(begin.elapsed().as_nanos() as u64 - posted_ns);
        if times.len() as u64 == ITEMS {
            supervisor.signal(over).expect("the main thread waits");
        }
    })?;

    // A thread is stopped by a flag, and a signal that makes it check the flag.
    let stopped = AtomicBool::new(false);
    let stop = actions.register_signal(|| {})?;

    // Stages are created from the end, because each posts to the next one.
    let mut mailboxes = vec![("sink", Mailbox::new(&actions, 256))];
    let mut next = (mailboxes[0].1.sender(), sink);
    for (name, work) in STAGES.into_iter().rev() {
        let (sender, action) = next;
        let stage = actions.register(move |[item, posted_ns, _]| {
            let message = Message { action, payload: [work(item), posted_ns, 0] };
            // No stage posts to an earlier one, so there will be room; unless the next stage has
            // failed, and the main thread is signalled at its end.
            let _ = sender.post_wait(message, None);
        })?;
        mailboxes.push((name, Mailbox::new(&actions, 256)));
        next = (mailboxes[mailboxes.len() - 1].1.sender(), stage);
    }
    let (first, entry) = next;

    let senders: Vec<_> = mailboxes.iter().map(|(_, mailbox)| mailbox.sender()).collect();
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        for (name, mailbox) in mailboxes {
            let (stopped, end) = (&stopped, End(main.sender(), over));
            let named = thread::Builder::new().name(name.to_owned());
            named.spawn_scoped(scope, move || run(mailbox, stopped, end))?;
        }
        feed(&first, entry, begin);
        let _ = main.wait(None);
        stopped.store(true, Relaxed);
        for sender in senders {
            // A thread that has failed has stopped.
            let _ = sender.signal(stop);
        }
        Ok(())
    })?;

    let expected: u64 = (0..ITEMS).map(|item| STAGES.iter().fold(item, |v, (_, f)| f(v))).sum();
    assert_eq!(sum.load(Relaxed), expected, "each item once, and through each stage");
    actions.unregister(entry)?;

    let mut times = times.lock().unwrap();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100] as f64 / 1e3;
    println!("{} items through {} threads, one each {GAP:?}", times.len(), STAGES.len() + 1);
    println!("on its way: median {:.1} µs, 90 % {:.1} µs, 99 % {:.1} µs", at(50), at(90), at(99));
    Ok(())
}

/// Signals the end of a thread when dropped, also if the thread panics.
struct End(Sender, SignalId);

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.0.signal(self.1);
    }
}

/// The work of each thread: runs incoming messages until it is told to stop.
fn run(mut mailbox: Mailbox, stopped: &AtomicBool, _end: End) {
    while !stopped.load(Relaxed) {
        // Spins for a while, and then sleeps.
        let _ = mailbox.wait(None);
    }
}

/// Posts an item after each gap, with the time at which it was posted; until the first stage fails.
fn feed(first: &Sender, entry: ActionId, begin: Instant) {
    for item in 0..ITEMS {
        let due = GAP * item as u32;
        thread::sleep(due.saturating_sub(begin.elapsed()));
        let posted_ns = begin.elapsed().as_nanos() as u64;
        let message = Message { action: entry, payload: [item, posted_ns, 0] };
        if first.post_wait(message, None).is_err() {
            return;
        }
    }
}
