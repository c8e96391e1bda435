//! The visible operations: everything that a thread of a model can do to shared state.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::graph::{Event, Kind, What};

/// A visible operation that a thread requests.
pub(crate) enum Op<'a> {
    Load {
        address: usize,
        order: Ordering,
    },
    Store {
        address: usize,
        value: u64,
        order: Ordering,
    },
    Modify {
        address: usize,
        success: Ordering,
        failure: Ordering,
        new: &'a dyn Fn(u64) -> Option<u64>,
    },
    Await {
        address: usize,
        order: Ordering,
        keep: &'a dyn Fn(u64) -> bool,
    },
    Spin {
        address: usize,
        order: Ordering,
        budget_ns: u32,
        keep: &'a dyn Fn(u64) -> bool,
    },
    /// Waits for a wake token and consumes it.
    Take {
        address: usize,
        deadline: Option<u64>,
    },
    Fence(Ordering),
    Heavy,
    Light,
    Section {
        word: usize,
        value: u64,
        flag: usize,
    },
    Choice {
        what: What,
        options: u64,
    },
    /// The end of the setup.
    Start,
}

/// The result of an operation: the value read, and whether the operation succeeded.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) value: u64,
    pub(crate) ok: bool,
}

impl Op<'_> {
    pub(crate) fn read_address(&self) -> Option<usize> {
        match *self {
            Op::Load { address, .. }
            | Op::Modify { address, .. }
            | Op::Await { address, .. }
            | Op::Spin { address, .. }
            | Op::Take { address, .. } => Some(address),
            Op::Section { flag, .. } => Some(flag),
            _ => None,
        }
    }

    pub(crate) fn read_order(&self, value: u64) -> Ordering {
        match *self {
            Op::Load { order, .. } | Op::Await { order, .. } | Op::Spin { order, .. } => order,
            Op::Modify { success, failure, new, .. } => {
                if new(value).is_some() {
                    success
                } else {
                    failure
                }
            }
            Op::Take { .. } => Acquire,
            _ => Relaxed,
        }
    }

    /// Address, value and order of the write, after a read of `half`.
    pub(crate) fn write_part(&self, half: Option<u64>) -> Option<(usize, u64, Ordering)> {
        match (self, half) {
            (&Op::Store { address, value, order }, None) => Some((address, value, order)),
            (Op::Modify { address, success, new, .. }, Some(half)) => {
                new(half).map(|new| (*address, new, *success))
            }
            (&Op::Take { address, .. }, Some(_)) => Some((address, 0, Relaxed)),
            (&Op::Section { word, value, .. }, Some(_)) => Some((word, value, Release)),
            _ => None,
        }
    }

    /// Returns whether a wait that has read `value` continues.
    pub(crate) fn keeps(&self, value: u64) -> bool {
        match self {
            Op::Await { keep, .. } | Op::Spin { keep, .. } => keep(value),
            Op::Take { .. } => value == 0,
            _ => false,
        }
    }

    /// Returns whether a read of `value` is the first half of a read-modify-write.
    pub(crate) fn modifies(&self, value: u64) -> bool {
        match self {
            Op::Modify { new, .. } => new(value).is_some(),
            Op::Take { .. } => value != 0,
            _ => false,
        }
    }

    /// Returns whether `event` can be the next event of this operation, after a read of `half`.
    pub(crate) fn fits(&self, event: &Event, half: Option<u64>) -> bool {
        match event.kind {
            Kind::Start => matches!(self, Op::Start),
            Kind::Read => half.is_none() && self.read_address().is_some(),
            Kind::Write => self.write_part(half).is_some(),
            Kind::Fence => matches!(self, Op::Fence(order) if *order == event.order),
            Kind::Heavy => matches!(self, Op::Heavy),
            Kind::Light => matches!(self, Op::Light),
            Kind::Choice(_) => matches!(self, Op::Choice { .. }),
            Kind::Timeout => self.is_timed(),
        }
    }

    pub(crate) fn is_section(&self) -> bool {
        matches!(self, Op::Section { .. })
    }

    /// Returns whether the wait may end without its condition.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self, Op::Spin { .. } | Op::Take { deadline: Some(_), .. })
    }
}
