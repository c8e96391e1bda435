//! The layers that a client requests.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::clip::Layer;

/// The layers that a client requests; the time available decides which of their frames it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// All layers.
    #[default]
    All,
    /// All frames except `b`.
    Reference,
    /// `I` and `P`. In units that are not [free](crate::clip::Unit::is_free) a decoder needs the
    /// `B` between for the next `P`; there only an `I` and a `P` of each unit remain.
    Predicted,
    /// Only `I`.
    Intra,
}

impl Quality {
    /// All qualities, the highest first.
    pub const ALL: [Self; 4] = [Self::All, Self::Reference, Self::Predicted, Self::Intra];

    /// The least important layer that it includes.
    pub const fn least(self) -> Layer {
        match self {
            Self::All => Layer::Disposable,
            Self::Reference => Layer::Bidirectional,
            Self::Predicted => Layer::Predicted,
            Self::Intra => Layer::Intra,
        }
    }

    /// Its name, which can be parsed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Reference => "reference",
            Self::Predicted => "predicted",
            Self::Intra => "intra",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Quality {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|quality| quality.name() == name)
            .ok_or(Error::Parameter("a quality is all, reference, predicted or intra"))
    }
}
