//! Tests active messages on a fiber that continues with an action on another thread.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::thread;

use antiphon_linux::Linux;
use antiphon_linux::fiber::{Hooks, Sleep, install};
use antiphon_runtime::message::{ActionId, Actions, Mailbox, Message, Refused};

thread_local! {
    /// The fiber that this thread is running.
    static FIBER: Cell<Option<u64>> = const { Cell::new(None) };
}

static HOOKS: Hooks = Hooks {
    current: || FIBER.get(),
    suspend: |_: u64, _: Sleep| unreachable!("it would wait for itself"),
    resume: |_| {},
    give_way: || false,
};

#[test]
fn a_fiber_is_in_its_action_wherever_it_runs() {
    install(&HOOKS).expect("the only ones");
    let actions = Actions::<Linux>::new(1);
    let (table, seen) = (actions.clone(), Arc::new(Mutex::new(None)));
    let noted = seen.clone();
    let moves = move |[own, ..]: [u64; 3]| {
        let table = table.clone();
        let elsewhere = move || {
            FIBER.set(Some(7));
            table.unregister(ActionId::from_bits(own as u32))
        };
        *noted.lock().unwrap() = thread::spawn(elsewhere).join().ok();
    };
    let action = actions.register(moves).expect("room");
    let mut mailbox: Mailbox<Linux> = Mailbox::new(&actions, 1);
    let message = Message { action, payload: [action.bits().into(), 0, 0] };
    mailbox.sender().post(message).expect("room");
    FIBER.set(Some(7));
    assert_eq!(mailbox.poll().messages, 1);
    FIBER.set(None);
    assert_eq!(*seen.lock().unwrap(), Some(Err(Refused::FromAction)));
    assert_eq!(actions.unregister(action), Ok(()));
}
