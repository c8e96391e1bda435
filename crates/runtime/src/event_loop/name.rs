//! The name of an event in reports.

use core::fmt;
use core::panic::Location;

/// The name of an event: given by the program, or the place where the event was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The name that the program has given.
    Given(&'static str),
    /// Where the event was made.
    Place(&'static Location<'static>),
}

impl Name {
    /// Returns whether the names are the same by address; `false` proves nothing.
    pub(super) fn is_at_once(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Given(one), Self::Given(two)) => core::ptr::eq(*one, *two),
            (Self::Place(one), Self::Place(two)) => core::ptr::eq(*one, *two),
            _ => false,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => f.pad(name),
            Self::Place(place) => place.fmt(f),
        }
    }
}
