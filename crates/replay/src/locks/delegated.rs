//! Delegation locks, to which critical sections are handed: an arriving thread neither takes nor
//! releases them.

use std::mem::ManuallyDrop;

use antiphon_rivals::delegation::{DsmSynch, Rcl};
use antiphon_sim::{Access, OwnLine, Sim, touch};

use super::instance::{Guarding, Guards, Simulated};

/// A way to run critical sections, one at a time.
///
/// Every lock can do that: with a lock that is taken and released, the arriving thread runs its
/// section between the two.
pub trait Sections: Guards {
    /// Runs `section` while no other section runs, on the calling simulated thread or on another
    /// one, and returns afterwards.
    fn with(&self, section: &mut dyn FnMut());

    /// Makes the calling thread run the sections of arriving threads, until
    /// [`dismiss`](Self::dismiss). Returns at once if the lock needs no server.
    fn serve(&self) {}

    /// Stops the server, if there is one: no more threads arrive.
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

/// RCL with a mailbox for each CPU; on machines with more CPUs, some share one.
pub(super) type Server = Rcl<(), Sim, 256>;
pub(super) type Combining = DsmSynch<(), Sim>;

/// A delegation lock in a simulation.
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

/// A section on the stack of the thread that requests it. The simulator charges for shared words
/// only, which a section is not: so the movement of its line, to the thread that runs it and back,
/// is charged here.
struct Handed<'a> {
    section: &'a mut dyn FnMut(),
    line: &'a OwnLine<u8>,
}

// SAFETY: all threads of a simulation run on one thread of the host.
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
