//! Tests of active messages on real threads.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use antiphon_linux::Linux;
use antiphon_linux::notify::{EventFd, Signal};
use antiphon_platform::{Clock, Clocks as _, Deadline, Notify, SocketId};
use antiphon_runtime::message::{
    ActionId, Actions, BATCH, Group, Mailbox, Message, NotPosted, NotSignalled, Park, Refused,
    Sender, SignalId, Spin, TableFull,
};

type Parking = Mailbox<Linux, Park<Linux>>;

fn soon() -> Option<Deadline> {
    Some(Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + 5_000_000 })
}

#[test]
fn all_to_all_each_message_is_delivered_once_and_in_order() {
    for (threads, capacity) in [(2, 64), (4, 2), (7, 256)] {
        let tally = common::all_to_all(threads, 5_000, capacity);
        assert_eq!(tally.delivered, (threads * threads) as u64 * 5_000);
        assert_eq!(tally.out_of_order, 0);
    }
}

/// Tests posters that wait for room, and an owner with its own way to sleep.
fn delivers(notify: impl Notify) {
    const EACH: u64 = 2_000;
    let actions = Actions::<Linux>::new(1);
    let sum = Arc::new(AtomicU64::new(0));
    let added = sum.clone();
    let add = move |[number, _, _]: [u64; 3]| {
        added.fetch_add(number, Relaxed);
    };
    let action = actions.register(add).expect("room");
    let mut mailbox = Mailbox::with_notify(&actions, 8, notify).spinning(1_000);
    thread::scope(|scope| {
        for _ in 0..2 {
            let sender = mailbox.sender();
            scope.spawn(move || {
                for number in 0..EACH {
                    let message = Message { action, payload: [number, 0, 0] };
                    sender.post_wait(message, None).expect("open");
                }
            });
        }
        let mut came = 0;
        while came < 2 * EACH {
            came += u64::from(mailbox.wait(None).messages);
        }
    });
    assert!(mailbox.wait(soon()).is_empty());
    assert_eq!(sum.load(Relaxed), EACH * (EACH - 1));
}

#[test]
fn owners_sleep_in_any_way() {
    delivers(Park::<Linux>::NEW);
    delivers(Spin::<Linux>::NEW);
    delivers(EventFd::new().expect("a file"));
    delivers(Signal::new(libc::SIGUSR2).expect("a signal"));
}

#[test]
fn what_finds_no_room_comes_back_and_so_does_what_is_not_delivered() {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|_| {}).expect("room");
    let mailbox = Parking::new(&actions, 2);
    let sender = mailbox.sender();
    let message = move |number| Message { action, payload: [number, 0, 0] };
    assert_eq!(sender.post(message(1)), Ok(()));
    assert_eq!(sender.post(message(2)), Ok(()));
    assert_eq!(sender.post(message(3)), Err(NotPosted::Full(message(3))));
    assert_eq!(sender.post_wait(message(3), soon()), Err(NotPosted::Full(message(3))));
    let signal = actions.register_signal(|| {}).expect("room");
    assert_eq!(sender.signal(signal), Ok(()));
    let blocked = thread::spawn({
        let sender = sender.clone();
        move || sender.post_wait(message(4), None)
    });
    assert_eq!(mailbox.close(), [message(1), message(2)]);
    assert_eq!(blocked.join().expect("no panic"), Err(NotPosted::Closed(message(4))));
    assert_eq!(sender.post(message(5)), Err(NotPosted::Closed(message(5))));
    assert_eq!(sender.signal(signal), Err(NotSignalled::Closed));
}

#[test]
fn a_message_has_an_action_that_messages_run() {
    let actions = Actions::<Linux>::new(1);
    let signal = actions.register_signal(|| panic!("by a message")).expect("room");
    let mut mailbox = Parking::new(&actions, 1);
    let sender = mailbox.sender();
    for action in [ActionId::from_bits(0), signal.action()] {
        let message = Message { action, payload: [0; 3] };
        assert_eq!(sender.post(message), Err(NotPosted::ForSignals(message)));
        assert_eq!(sender.post_wait(message, None), Err(NotPosted::ForSignals(message)));
    }
    let none = SignalId::from_action(ActionId::from_bits(0)).expect("of an index of signals");
    assert_eq!(sender.signal(none), Err(NotSignalled::Unregistered));
    assert_eq!(actions.unregister(none.action()), Err(Refused::Unknown));
    assert!(mailbox.poll().is_empty());
}

#[test]
fn a_batch_is_bounded_and_signals_are_one() {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|_| {}).expect("room");
    let signal = actions.register_signal(|| {}).expect("room");
    let mut mailbox = Parking::new(&actions, 2 * BATCH as usize);
    let sender = mailbox.sender();
    for _ in 0..BATCH + 1 {
        sender.post(Message { action, payload: [0; 3] }).expect("room");
        sender.signal(signal).expect("open");
    }
    let first = mailbox.poll();
    assert_eq!((first.messages, first.signals, first.strays), (BATCH, 1, 0));
    assert_eq!(mailbox.poll().messages, 1);
    assert!(mailbox.poll().is_empty() && mailbox.wait(soon()).is_empty());
    let doze = mailbox.doze();
    assert!(doze.is_some());
    drop(doze);
    sender.signal(signal).expect("open");
    assert!(mailbox.doze().is_none(), "not with something there");
}

#[test]
fn an_action_that_unregisters_is_refused_and_a_table_can_be_full() {
    let actions = Actions::<Linux>::new(1);
    let (table, seen) = (actions.clone(), Arc::new(Mutex::new(None)));
    let noted = seen.clone();
    let own = Arc::new(AtomicU64::new(0));
    let named = own.clone();
    let unregister = move |_| {
        let id = ActionId::from_bits(named.load(Relaxed) as u32);
        *noted.lock().unwrap() = Some(table.unregister(id));
    };
    let action = actions.register(unregister).expect("room");
    own.store(action.bits().into(), Relaxed);
    assert_eq!(actions.register(|_| {}), Err(TableFull));
    let mut mailbox = Parking::new(&actions, 1);
    let sender = mailbox.sender();
    sender.post(Message { action, payload: [0; 3] }).expect("room");
    assert_eq!(mailbox.poll().messages, 1);
    assert_eq!(*seen.lock().unwrap(), Some(Err(Refused::FromAction)));
    assert_eq!(actions.unregister(action), Ok(()));
    assert_eq!(actions.unregister(action), Err(Refused::Unknown));
    sender.post(Message { action, payload: [0; 3] }).expect("room");
    assert_eq!(mailbox.poll().strays, 1);
    let signal = actions.register_signal(|| {}).expect("room");
    assert_eq!(actions.unregister(signal.action()), Ok(()));
    assert_eq!(sender.signal(signal), Err(NotSignalled::Unregistered));
}

#[test]
fn an_action_that_panics_was_delivered_and_the_next_is() {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|[number, ..]| assert_ne!(number, 1, "meant")).expect("room");
    let mut mailbox = Parking::new(&actions, 2);
    let sender = mailbox.sender();
    for number in 1..3 {
        sender.post(Message { action, payload: [number, 0, 0] }).expect("room");
    }
    assert!(catch_unwind(AssertUnwindSafe(|| mailbox.poll())).is_err());
    assert_eq!(mailbox.poll().messages, 1);
    assert_eq!(actions.unregister(action), Ok(()), "the batch is over");
}

#[test]
fn signals_behind_one_that_panics_are_run_by_the_next_poll() {
    let actions = Actions::<Linux>::new(0);
    let first = actions.register_signal(|| panic!("meant")).expect("room");
    let second = actions.register_signal(|| {}).expect("room");
    let mut mailbox = Parking::new(&actions, 1);
    let sender = mailbox.sender();
    for signal in [first, second] {
        sender.signal(signal).expect("open");
    }
    assert!(catch_unwind(AssertUnwindSafe(|| mailbox.poll())).is_err());
    assert!(mailbox.is_pending() && mailbox.doze().is_none());
    assert_eq!(mailbox.poll().signals, 1);
    assert!(mailbox.poll().is_empty());
}

#[test]
fn an_action_that_panics_when_it_is_dropped_leaves_its_entry_free() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("meant");
        }
    }
    let actions = Actions::<Linux>::new(1);
    let owned = Panics;
    let keeps = move |_| {
        let _ = &owned;
    };
    let action = actions.register(keeps).expect("room");
    assert!(catch_unwind(AssertUnwindSafe(|| actions.unregister(action))).is_err());
    assert_eq!(actions.unregister(action), Err(Refused::Unknown));
    assert!(actions.register(|_| {}).is_ok());
}

#[test]
fn an_action_does_not_wait_for_room_in_its_own_mailbox() {
    let actions = Actions::<Linux>::new(1);
    let (own, seen) = (Arc::new(Mutex::new(None::<Sender<Linux>>)), Arc::new(Mutex::new(None)));
    let (to, noted) = (own.clone(), seen.clone());
    let again = move |[action, ..]: [u64; 3]| {
        let message = Message { action: ActionId::from_bits(action as u32), payload: [7; 3] };
        let posted = to.lock().unwrap().as_ref().map(|to| to.post_wait(message, None));
        *noted.lock().unwrap() = posted;
    };
    let action = actions.register(again).expect("room");
    let mut mailbox = Parking::new(&actions, 1);
    *own.lock().unwrap() = Some(mailbox.sender());
    let message = Message { action, payload: [action.bits().into(), 0, 0] };
    mailbox.sender().post(message).expect("room");
    assert_eq!(mailbox.poll().messages, 1);
    let refused = NotPosted::Full(Message { action, payload: [7; 3] });
    assert_eq!(*seen.lock().unwrap(), Some(Err(refused)));
}

#[test]
fn a_sender_may_outlive_the_mailbox() {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|_| {}).expect("room");
    let message = Message { action, payload: [0; 3] };
    // Dropped while others post.
    let mailbox = Parking::new(&actions, 2);
    let poster = thread::spawn({
        let sender = mailbox.sender();
        move || while sender.post_wait(message, None).is_ok() {}
    });
    while !mailbox.is_pending() {
        thread::yield_now();
    }
    let sender = mailbox.sender();
    drop(mailbox);
    poster.join().expect("no panic");
    assert_eq!(sender.post(message), Err(NotPosted::Closed(message)));
    assert_eq!(sender.post_wait(message, None), Err(NotPosted::Closed(message)));
}

#[test]
#[should_panic = "at most 2147483648"]
fn a_mailbox_has_a_largest_size() {
    let _ = Parking::new(&Actions::new(1), usize::MAX);
}

#[test]
fn a_group_posts_to_each_member_once() {
    let actions = Actions::<Linux>::new(1);
    let action = actions.register(|_| {}).expect("room");
    let mut mailboxes: Vec<_> = (0..4).map(|_| Parking::new(&actions, 1)).collect();
    let mut group = Group::new();
    for (number, mailbox) in mailboxes.iter().enumerate() {
        group.add(SocketId(number as u32 % 2), mailbox.sender());
    }
    let message = Message { action, payload: [0; 3] };
    assert_eq!(group.multicast(SocketId(1), message), Ok(()));
    let missed = group.broadcast(message).expect_err("two are full");
    let full: Vec<_> = missed.iter().map(|missed| (missed.member, missed.why)).collect();
    assert_eq!(full, [(2, NotPosted::Full(message)), (3, NotPosted::Full(message))]);
    assert_eq!(group.members().count(), 4);
    assert!(mailboxes.iter_mut().all(|mailbox| mailbox.poll().messages == 1));
}
