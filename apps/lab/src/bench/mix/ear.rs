//! Quality of a call, by its mouth-to-ear latency.
//!
//! The delay that the server adds is measured. The rest, from a microphone to the server and on to
//! a loudspeaker, is a stated budget: Modelski's dissertation (§2.4.2) says that transport takes
//! the vast majority of the whole, and gives no number; here it is four fifths of 150 ms.

/// Delay of the rest of the path, in milliseconds, if none is given.
pub const ELSEWHERE_MS: u16 = 120;

/// The classes that the dissertation quotes from Agastya, Mechanic and Kothari, "Mouth-to-ear
/// latency in popular VoIP clients" (2009).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Below 150 ms.
    Excellent,
    /// Up to 300 ms.
    Good,
    /// More.
    Poor,
}

impl Class {
    /// Returns the class of a mouth-to-ear latency, in milliseconds.
    pub fn of(ms: f64) -> Self {
        if ms < 150.0 {
            Self::Excellent
        } else if ms <= 300.0 {
            Self::Good
        } else {
            Self::Poor
        }
    }

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Excellent => "excellent",
            Self::Good => "good",
            Self::Poor => "poor",
        }
    }
}

/// Returns the total mouth-to-ear latency, in milliseconds, if the server adds `added_ns`.
pub fn mouth_to_ear_ms(added_ns: f64, elsewhere_ms: u16) -> f64 {
    added_ns / 1e6 + f64::from(elsewhere_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_meet_where_they_are_said_to() {
        let of =
            |added_ms: f64, elsewhere_ms| Class::of(mouth_to_ear_ms(added_ms * 1e6, elsewhere_ms));
        assert_eq!(of(29.9, ELSEWHERE_MS), Class::Excellent);
        assert_eq!(of(30.0, ELSEWHERE_MS), Class::Good);
        assert_eq!(of(180.0, ELSEWHERE_MS), Class::Good);
        assert_eq!(of(180.1, ELSEWHERE_MS), Class::Poor);
        assert_eq!(of(0.0, 0), Class::Excellent);
        assert_eq!(Class::Poor.name(), "poor");
    }
}
