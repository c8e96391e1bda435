//! Upper bounds of the times in a machine file.

use crate::simulation::GRACE_NS;

/// The kind of a time. The bound of each kind is such that a given number of such times fits, one
/// after the other, in the [grace](crate::Simulation::grace_ns): threads that run for longer count
/// as stuck, and beyond these bounds threads that make progress would, too. Real machines have a
/// tenth or less of each bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// A part of an access. A million: 4096 CPUs queue for a line, 200 times each.
    Access,
    /// Work of the system, or of an interrupt. Ten thousand: 4096 threads sleep twice, and each is
    /// woken by the previous one.
    System,
    /// A turn at a CPU, or another period. A hundred: that many threads share a CPU.
    Period,
}

impl Span {
    /// The longest time of this kind.
    pub(super) const fn most_ns(self) -> u64 {
        GRACE_NS
            / match self {
                Self::Access => 1_000_000,
                Self::System => 10_000,
                Self::Period => 100,
            }
    }

    /// The longest time of this kind, for messages.
    pub(super) const fn most(self) -> &'static str {
        match self {
            Self::Access => "10 us",
            Self::System => "1 ms",
            Self::Period => "100 ms",
        }
    }
}

const _: () = {
    assert!(Span::Access.most_ns() == 10_000, "as `most` says");
    assert!(Span::System.most_ns() == 1_000_000, "as `most` says");
    assert!(Span::Period.most_ns() == 100_000_000, "as `most` says");
};
