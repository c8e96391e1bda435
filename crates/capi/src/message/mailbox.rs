//! The C interface of `antiphon_mailbox_t`, the owner's end.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::os::fd::{AsFd, AsRawFd};

use antiphon::Mutex;
use antiphon_linux::Linux;
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Deadline, Notify, Parked, Ticket};
use antiphon_runtime::message::{self, Doze, Park, Spin};
use libc::{EAGAIN, EBUSY, EINVAL, EIO, ETIMEDOUT, timespec};

use super::Message;
use super::actions::Actions;
use super::sender::Sender;
use crate::cancel::uncancelled;
use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_mailbox_t`.
pub struct Mailbox {
    owner: Mutex<Owner>,
    sender: Sender,
    /// The file that an event loop waits for, or -1.
    file: c_int,
}

/// The part that only the owner accesses.
struct Owner {
    dozing: Option<Doze<'static, Linux, Sleep>>,
    mailbox: message::Mailbox<Linux, Sleep>,
}

/// `ANTIPHON_MAILBOX_MAX`.
const MOST: usize = 1 << 20;

/// The kinds of the owner's sleep: `enum antiphon_mailbox_kind`, in its order.
pub(super) enum Sleep {
    Parks(Park<Linux>),
    File(EventFd),
    Spins(Spin<Linux>),
}

impl Sleep {
    /// Returns the way with that number, or an error number.
    fn of(kind: c_int) -> Result<Self, c_int> {
        match kind {
            0 => Ok(Self::Parks(Park::NEW)),
            1 => EventFd::new().map(Self::File).map_err(|e| e.raw_os_error().unwrap_or(EIO)),
            2 => Ok(Self::Spins(Spin::NEW)),
            _ => Err(EINVAL),
        }
    }

    fn file(&self) -> c_int {
        match self {
            Self::File(file) => file.as_fd().as_raw_fd(),
            Self::Parks(_) | Self::Spins(_) => -1,
        }
    }
}

/// Calls the way's own method.
macro_rules! by_its_way {
    ($self:ident, $way:ident => $call:expr) => {
        match $self {
            Sleep::Parks($way) => $call,
            Sleep::File($way) => $call,
            Sleep::Spins($way) => $call,
        }
    };
}

impl Notify for Sleep {
    fn begin(&self) -> Ticket {
        by_its_way!(self, way => way.begin())
    }

    unsafe fn sleep(&self, ticket: Ticket, deadline: Option<Deadline>) -> Parked {
        // SAFETY: the caller's promise; the way of a mailbox stays the same.
        by_its_way!(self, way => unsafe { way.sleep(ticket, deadline) })
    }

    unsafe fn end(&self, ticket: Ticket) {
        // SAFETY: the caller's promise; the way of a mailbox stays the same.
        by_its_way!(self, way => unsafe { way.end(ticket) });
    }

    fn notify(&self, ticket: Ticket) {
        by_its_way!(self, way => way.notify(ticket));
    }
}

/// `antiphon_delivered_t`.
#[repr(C)]
pub struct Delivered {
    messages: u32,
    signals: u32,
    strays: u32,
    kept: u32,
}

impl Owner {
    /// The mailbox of an owner that is awake.
    fn awake(&mut self) -> &mut message::Mailbox<Linux, Sleep> {
        self.dozing = None;
        &mut self.mailbox
    }

    fn doze(&mut self) -> c_int {
        // SAFETY: the borrowed part is shared with the senders, does not move while the mailbox
        // exists, and is dropped before the mailbox changes.
        let mailbox: &'static mut message::Mailbox<_, _> =
            unsafe { &mut *ptr::from_mut(self.awake()) };
        self.dozing = mailbox.doze();
        unless(self.dozing.is_some(), EAGAIN)
    }
}

impl Mailbox {
    /// Runs `act` as the owner; returns `EBUSY` if another thread is the owner now.
    fn own(&self, act: impl FnOnce(&mut Owner) -> c_int) -> c_int {
        self.owner.try_lock().map_or(EBUSY, |mut owner| act(&mut owner))
    }

    /// Delivers messages; `nothing` is the code if there were none.
    fn deliver(
        &self,
        delivered: &mut Delivered,
        nothing: c_int,
        how: impl FnOnce(&mut message::Mailbox<Linux, Sleep>) -> message::Delivered,
    ) -> c_int {
        self.own(|owner| {
            let found = how(owner.awake());
            let message::Delivered { messages, signals, strays } = found;
            *delivered = Delivered { messages, signals, strays, kept: 0 };
            unless(!found.is_empty(), nothing)
        })
    }
}

exports! {
    /// Makes a mailbox.
    fn antiphon_mailbox_create(
        mailbox: &mut *mut Mailbox,
        actions: &Actions,
        capacity: usize,
        kind: c_int,
    ) -> c_int {
        if capacity == 0 || capacity > MOST {
            return EINVAL;
        }
        let sleep = match Sleep::of(kind) {
            Ok(sleep) => sleep,
            Err(code) => return code,
        };
        let file = sleep.file();
        let made = message::Mailbox::with_notify(&actions.0, capacity, sleep);
        let sender = Sender(made.sender());
        let owner = Mutex::new(Owner { dozing: None, mailbox: made });
        *mailbox = Box::into_raw(Box::new(Mailbox { owner, sender, file }));
        0
    }

    /// Closes a mailbox.
    fn antiphon_mailbox_close(
        mailbox: *mut Mailbox,
        left: Option<unsafe extern "C" fn(*mut c_void, *const Message)>,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: created by this library, and not closed yet.
        if unsafe { (*mailbox).owner.is_locked() } {
            return EBUSY;
        }
        // SAFETY: created by this library, and no thread uses it after this call.
        let closed = *unsafe { Box::from_raw(mailbox) };
        uncancelled(|| {
            let Mailbox { owner, .. } = closed;
            let Owner { dozing, mailbox } = owner.into_inner();
            drop(dozing);
            let messages = mailbox.close();
            if let Some(left) = left {
                for message in messages {
                    // SAFETY: the caller's function, with the context that the caller passes to it.
                    unsafe { left(context, &Message::of(message)) }
                }
            }
        });
        0
    }

    /// Makes a sender, which posts to the mailbox.
    fn antiphon_mailbox_sender(mailbox: &Mailbox) -> *mut Sender {
        Box::into_raw(Box::new(Sender(mailbox.sender.0.clone())))
    }

    /// Delivers the pending messages.
    fn antiphon_mailbox_poll(mailbox: &Mailbox, delivered: &mut Delivered) -> c_int {
        mailbox.deliver(delivered, EAGAIN, |owned| owned.poll())
    }

    /// Delivers the pending messages, or waits for one.
    fn antiphon_mailbox_wait(mailbox: &Mailbox, delivered: &mut Delivered) -> c_int {
        mailbox.deliver(delivered, EAGAIN, |owned| owned.wait(None))
    }

    /// Delivers the pending messages, or waits for one until the deadline.
    fn antiphon_mailbox_timedwait(
        mailbox: &Mailbox,
        delivered: &mut Delivered,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            mailbox.deliver(delivered, ETIMEDOUT, |owned| owned.wait(Some(deadline)))
        })
    }

    /// Returns the file that is readable when the owner was notified.
    fn antiphon_mailbox_fd(mailbox: &Mailbox) -> c_int {
        mailbox.file
    }

    /// Makes the file report messages that are posted from now on.
    fn antiphon_mailbox_doze(mailbox: &Mailbox) -> c_int {
        if mailbox.file == -1 {
            return EINVAL;
        }
        mailbox.own(Owner::doze)
    }
}
