//! The policy [`Then`], which applies one policy after another.

use core::cmp::Ordering;

use antiphon_platform::Platform;

use super::{Policy, Waiting};

/// `A`, and `B` among waiters that are equal by `A`: `Then<Priority, Numa>` serves the most urgent
/// waiters first and, among these, waiters on the head's socket. Two policies that group gather
/// waiters that are alike in both. Two policies that each note a [`rank`](Waiting::rank) can be
/// combined only if it is the same rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Then<A, B>(pub A, pub B);

impl<A: Policy, B: Policy> Policy for Then<A, B> {
    fn of(byte: impl FnOnce() -> u8) -> Self {
        let byte = byte();
        Self(A::of(|| byte), B::of(|| byte))
    }

    fn shuffles<P: Platform>(self) -> bool {
        self.0.shuffles::<P>() || self.1.shuffles::<P>()
    }

    fn notes<P: Platform>(self) -> bool {
        self.0.notes::<P>() || self.1.notes::<P>()
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        if self.0.notes::<P>() {
            self.0.on_wait(me);
        }
        if self.1.notes::<P>() {
            self.1.on_wait(me);
        }
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        self.0.groups(shuffler, candidate) && self.1.groups(shuffler, candidate)
    }

    fn sorts(self) -> bool {
        self.0.sorts() || self.1.sorts()
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        let first = self.0.compare(shuffler, one, other);
        first.then_with(|| self.1.compare(shuffler, one, other))
    }

    fn strict(self) -> bool {
        self.0.strict() || self.1.strict()
    }

    fn bypass(self) -> u16 {
        self.0.bypass().min(self.1.bypass())
    }

    fn wakes(self) -> bool {
        self.0.wakes() || self.1.wakes()
    }

    fn lends(self) -> bool {
        self.0.lends() || self.1.lends()
    }

    fn measures(self) -> bool {
        self.0.measures() || self.1.measures()
    }
}
