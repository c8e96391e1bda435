//! A mailbox of the runtime whose owner is a CPU: its messages run at once, in an interrupt.
//!
//! The mailbox is the one that Linux programs use, with another notifier ([`Interrupt`]). Its owner
//! is the handler of active messages, which delivers the waiting messages and arms the mailbox
//! again, so that the next poster sends the next interrupt.
//!
//! An action runs with interrupts off and must not wait. Neither may the handler. So posters can't
//! wait for room: to wake them, the handler would take the lock of their list.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::mem;

use antiphon_metal::kernel::message as interrupts;
use antiphon_metal::{Interrupt, Metal};
use antiphon_runtime::message::{Actions, Mailbox, Message, NotPosted, Sender};

/// A mailbox whose messages run in interrupts of one CPU.
pub struct Prompt {
    mailbox: UnsafeCell<Option<Mailbox<Metal, Interrupt>>>,
}

// SAFETY: only the handler of one CPU accesses the mailbox, and before it is armed its maker.
unsafe impl Sync for Prompt {}

/// Posts to a [`Prompt`] mailbox.
#[derive(Clone)]
pub struct PromptSender(Sender<Metal, Interrupt>);

/// Error: the table of actions has no free entry for the one that notifies the CPU.
#[derive(Clone, Copy, Debug)]
pub struct NoAction;

impl Prompt {
    /// Makes a mailbox for `capacity` messages, which run actions of `actions` on CPU `cpu`. It
    /// lives as long as the image.
    pub fn open(
        cpu: u32,
        actions: &Actions<Metal>,
        capacity: usize,
    ) -> Result<PromptSender, NoAction> {
        let prompt: &'static Self = Box::leak(Box::new(Self { mailbox: UnsafeCell::new(None) }));
        let word = core::ptr::from_ref(prompt).expose_provenance();
        let action = interrupts::register(deliver, word).map_err(|_| NoAction)?;
        let mailbox = Mailbox::with_notify(actions, capacity, Interrupt { cpu, action });
        let sender = PromptSender(mailbox.sender());
        // SAFETY: the action was not posted yet, so no handler accesses the mailbox.
        unsafe { *prompt.mailbox.get() = Some(mailbox) };
        // The action runs on the CPU, and arms the mailbox.
        interrupts::post(cpu, action);
        Ok(sender)
    }
}

/// The action: delivers messages until the mailbox is empty.
fn deliver(word: usize) {
    let prompt = core::ptr::with_exposed_provenance::<Prompt>(word);
    // SAFETY: `open` has leaked the mailbox. Only its CPU runs this, with interrupts off.
    let mailbox = unsafe { &mut *(*prompt).mailbox.get() };
    let Some(mailbox) = mailbox else { return };
    loop {
        // The counts are not used: nothing here reports messages whose action is gone.
        let _ = mailbox.poll();
        if let Some(doze) = mailbox.doze() {
            // The mailbox stays armed. `Interrupt` has no sleep to end.
            mem::forget(doze);
            return;
        }
    }
}

impl PromptSender {
    /// Posts a message. Does not block; sends an interrupt if the handler has armed the mailbox.
    #[inline]
    pub fn post(&self, message: Message) -> Result<(), NotPosted> {
        self.0.post(message)
    }
}
