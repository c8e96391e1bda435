//! Locks that critical sections are handed to: whoever comes does not take them, and has nothing to
//! give back.

use std::mem::ManuallyDrop;

use antiphon_sim::{Access, OwnLine, Sim, touch};
use antiphon_sync::lock::delegation::{DsmSynch, Rcl};

use super::instance::{Guarding, Guards, Simulated};

/// What runs critical sections, one at a time.
///
/// Every lock does: one that is taken has it run by who has come with it, between taking it and
/// giving it back.
pub trait Sections: Guards {
    /// Runs `section` while no other is run, on the calling simulated thread or on another one, and
    /// returns afterwards.
    fn with(&self, section: &mut dyn FnMut());

    /// Has the calling thread run the sections of those who come, until
    /// [`dismiss`](Self::dismiss). Returns at once if the lock needs no server.
    fn serve(&self) {}

    /// Lets the server go, if there is one: nobody comes any more.
    fn dismiss(&self) {}
}

impl<S: Simulated> Sections for S {
    fn with(&self, section: &mut dyn FnMut()) {
        self.lock();
        section();
        // SAFETY: locked above.
        unsafe { self.unlock() };
    }
}

/// A mailbox for each CPU; on machines of more than that, some share one.
pub(super) type Server = Rcl<(), Sim, 256>;
pub(super) type Combining = DsmSynch<(), Sim>;

/// A lock that sections are handed to.
struct Delegated<L>(ManuallyDrop<OwnLine<Guarding<L>>>);

pub(super) fn combining() -> Box<dyn Sections> {
    Box::new(Delegated(Guarding::new(Combining::new(()))))
}

pub(super) fn served() -> Box<dyn Sections> {
    Box::new(Delegated(Guarding::new(Server::new(()))))
}

impl<L> Guards for Delegated<L> {
    fn beside(&self, access: Access) {
        touch(&self.0.words, access);
    }
}

impl Sections for Delegated<Combining> {
    fn with(&self, section: &mut dyn FnMut()) {
        hand_over(section, |handed| self.0.lock.with(move |()| handed.run()));
    }
}

impl Sections for Delegated<Server> {
    fn with(&self, section: &mut dyn FnMut()) {
        hand_over(section, |handed| self.0.lock.with(move |()| handed.run()));
    }

    fn serve(&self) {
        self.0.lock.lend().expect("one server at a time").run();
    }

    fn dismiss(&self) {
        let _ = self.0.lock.stop();
    }
}

/// A section on the stack of who has come with it. The simulator prices words that threads share,
/// and a section is none: so its line is priced here, as it moves to who runs it and back.
struct Handed<'a> {
    section: &'a mut dyn FnMut(),
    line: &'a OwnLine<u8>,
}

// SAFETY: all threads of a simulation are on one thread of the host.
unsafe impl Send for Handed<'_> {}

impl Handed<'_> {
    fn run(self) {
        touch(self.line, Access::Write);
        (self.section)();
    }
}

fn hand_over(section: &mut dyn FnMut(), to: impl FnOnce(Handed<'_>)) {
    let line = OwnLine(0);
    touch(&line, Access::Write);
    to(Handed { section, line: &line });
    touch(&line, Access::Read);
}
