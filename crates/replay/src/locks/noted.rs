//! A policy whose steps are counted.

use core::cmp::Ordering;

use antiphon_platform::Platform;
use antiphon_sync::policy::{Policy, Waiting};

/// The policy `Q`; also counts each waiter that a shuffler examines, at no simulated cost.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Noted<Q>(Q);

impl<Q: Policy> Policy for Noted<Q> {
    fn shuffles<P: Platform>(self) -> bool {
        self.0.shuffles::<P>()
    }

    fn notes<P: Platform>(self) -> bool {
        self.0.notes::<P>()
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        self.0.on_wait(me);
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        antiphon_sim::note();
        self.0.groups(shuffler, candidate)
    }

    fn by_socket<P: Platform>(self) -> bool {
        self.0.by_socket::<P>()
    }

    fn sorts(self) -> bool {
        self.0.sorts()
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        antiphon_sim::note();
        self.0.compare(shuffler, one, other)
    }

    fn strict(self) -> bool {
        self.0.strict()
    }

    fn bypass(self) -> u16 {
        self.0.bypass()
    }

    fn wakes(self) -> bool {
        self.0.wakes()
    }
}
