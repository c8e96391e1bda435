//! Locks that critical sections are handed to: an arriving thread does not take them, and has
//! nothing to give back.

use std::mem::ManuallyDrop;

use antiphon_rivals::delegation::{DsmSynch, Rcl};
use antiphon_sim::{Access, OwnLine, Sim, touch};

use super::instance::{Guarding, Guards, Simulated};

/// The means to run critical sections, one at a time.
///
/// Every lock can do that: with a lock that is taken, the thread that has come with a section runs
/// it, between taking the lock and giving it back.
pub trait Sections: Guards {
    /// Runs `section` while no other is run, on the calling simulated thread or on another one, and
    /// returns afterwards.
    fn with(&self, section: &mut dyn FnMut());

    /// Makes the calling thread run the sections of arriving threads, until
    /// [`dismiss`](Self::dismiss). Returns at once if the lock needs no server.
    fn serve(&self) {}

    /// Lets the server go, if there is one: no thread comes any more.
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

/// A section on the stack of the thread that has come with it. The simulator prices words that
/// threads share, and a section is none: so its line is priced here, as it moves to the thread that
/// runs it and back.
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
