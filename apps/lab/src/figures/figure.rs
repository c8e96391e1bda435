//! A figure of a document: where it is, how it is drawn here, and what is compared.

use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;
use antiphon_report::page::curves::Curve;
use antiphon_report::page::lanes::Lane;

use super::model::Model;

/// A figure or table of a document.
pub struct Figure {
    /// The document's number.
    pub document: &'static str,
    /// The name behind the colon: the document's number of the figure, or a word.
    pub name: &'static str,
    /// The document's title of it.
    pub title: &'static str,
    pub how: How,
}

/// How a figure is drawn here.
pub enum How {
    /// From a model, by this function.
    Simulated { published: &'static str, draw: Draw },
    /// By another command.
    By { command: &'static str, about: &'static str },
    /// Not at all, for this reason.
    Not(&'static str),
}

/// Simulates what a figure shows.
pub type Draw = fn(&mut Model) -> Result<Drawing, Failure>;

/// A figure with its values.
pub struct Drawing {
    /// What was simulated.
    pub conditions: String,
    pub panels: Vec<Panel>,
    pub compared: Vec<Compared>,
}

/// A part of a figure.
pub struct Panel {
    pub title: String,
    pub picture: Picture,
}

/// Formats a value.
pub type Words = fn(f64) -> String;

/// What a panel shows.
pub enum Picture {
    /// Curves over counts of something, whose noun is `over`. Those of the document are dashed.
    Curves {
        over: &'static str,
        curves: Vec<Curve>,
        words: Words,
    },
    /// Distributions: the value that each share of trials is below.
    Shares {
        curves: Vec<Curve>,
        words: Words,
    },
    Bars {
        bars: Vec<Bar>,
        words: Words,
    },
    /// What threads do over time, in nanoseconds.
    Lanes(Vec<Lane>),
}

/// A statement of the document, and the model's value of it.
#[derive(Clone)]
pub struct Compared {
    pub what: String,
    /// The document's words or value.
    pub document: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub bound: Bound,
}

/// When the model's value agrees with the document's statement. Bounds are the document's values;
/// where it has none, they are those of its words.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// From a third of the document's value to three times of it: the shape, not the figure.
    Near(f64),
}

/// A shape that is within this factor of the document's value is the same.
const NEAR: f64 = 3.0;

impl Compared {
    pub fn new(
        what: impl Into<String>,
        document: &'static str,
        (value, unit): (f64, &'static str),
        bound: Bound,
    ) -> Self {
        Self { what: what.into(), document, value, unit, bound }
    }

    /// A ratio of two values.
    pub fn times(
        what: impl Into<String>,
        document: &'static str,
        (one, other): (f64, f64),
        bound: Bound,
    ) -> Self {
        Self::new(what, document, (one / other, "times"), bound)
    }

    /// Returns whether the value agrees with the document.
    pub fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.value >= least,
            Bound::AtMost(most) => self.value <= most,
            Bound::Near(value) => (value / NEAR..=value * NEAR).contains(&self.value),
        }
    }
}

impl Bound {
    /// The bound in words.
    pub fn words(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::AtMost(most) => format!("≤ {most}"),
            Self::Near(value) => format!("{value}, within {NEAR} times"),
        }
    }
}

impl Figure {
    /// The name on the command line.
    pub fn id(&self) -> String {
        format!("{}:{}", self.document, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_agrees_up_to_its_bound() {
        let holds = |value, bound| Compared::new("", "", (value, ""), bound).holds();
        assert!(holds(2.0, Bound::AtLeast(2.0)) && !holds(1.9, Bound::AtLeast(2.0)));
        assert!(holds(2.0, Bound::AtMost(2.0)) && !holds(2.1, Bound::AtMost(2.0)));
        assert!(holds(2.0, Bound::Near(6.0)) && holds(18.0, Bound::Near(6.0)));
        assert!(!holds(1.9, Bound::Near(6.0)) && !holds(18.1, Bound::Near(6.0)));
        // Without a value nothing holds.
        assert!(!holds(f64::NAN, Bound::AtLeast(0.0)) && !holds(f64::NAN, Bound::Near(1.0)));
    }
}
