//! Our active messages: a message is posted to the mailbox of the waiter, which runs its action.

use std::sync::{Mutex, PoisonError};

use antiphon_message::{ActionId, Actions, Mailbox, Message, Sender};

use super::Mechanism;

/// A mailbox whose owner spins before it sleeps or, without `SPINS`, sleeps at once.
pub struct Post<const SPINS: bool> {
    sender: Sender,
    /// Used by the receiver only: the lock satisfies the type system, and is always free.
    mailbox: Mutex<Mailbox>,
    action: ActionId,
}

/// Capacity of the mailbox; it holds one message at a time.
const CAPACITY: usize = 2;

impl<const SPINS: bool> Mechanism for Post<SPINS> {
    fn new() -> Result<Self, String> {
        let actions = Actions::new(1);
        let action = actions.register(|_| {}).map_err(|full| full.to_string())?;
        let mailbox = Mailbox::new(&actions, CAPACITY);
        let mailbox = if SPINS { mailbox } else { mailbox.spinning(0) };
        Ok(Self { sender: mailbox.sender(), mailbox: Mutex::new(mailbox), action })
    }

    #[inline]
    fn signal(&self) {
        let message = Message { action: self.action, payload: [0; 3] };
        self.sender.post(message).expect("there is room for a message, and an owner");
    }

    #[inline]
    fn wait(&self) {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        while mailbox.wait(None).messages == 0 {}
    }
}
