//! The figure that a command is expected to print, and its bounds.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::path::Path;

/// One figure of the command's JSON and its bounds, which come from the document's claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The path of the figure.
    pub value: Path,
    /// The path of a number that is subtracted from the figure.
    pub minus: Option<Path>,
    /// The path of the divisor, for a ratio.
    pub over: Option<Path>,
    /// The path of a number that is subtracted from the divisor.
    pub over_minus: Option<Path>,
    /// The lower bound.
    pub at_least: Option<f64>,
    /// The upper bound.
    pub at_most: Option<f64>,
    /// The document's figure, in its words.
    pub claimed: String,
    /// Why the bounds differ from those of the claim, if they do.
    pub relaxed: Option<String>,
}

impl Expect {
    /// The defect of its form, if there is one.
    pub fn defect(&self) -> Option<&'static str> {
        match (self.at_least, self.at_most) {
            (None, None) => Some("an `expect` has neither `at_least` nor `at_most`"),
            (Some(least), Some(most)) if least > most => {
                Some("`at_least` of an `expect` is above its `at_most`")
            }
            _ if self.over.is_none() && self.over_minus.is_some() => {
                Some("`over_minus` of an `expect` has no `over`")
            }
            (least, most) if least.or(most).is_some_and(f64::is_nan) => {
                Some("a bound of an `expect` is no number")
            }
            _ if self.claimed.trim().is_empty() => Some("`claimed` of an `expect` is empty"),
            _ if self.relaxed.as_ref().is_some_and(|why| why.trim().is_empty()) => {
                Some("`relaxed` of an `expect` says why")
            }
            _ => None,
        }
    }

    /// Reads the figure from the command's output.
    ///
    /// # Errors
    ///
    /// If a path leads nowhere, or the divisor is 0.
    pub fn figure(&self, json: &Value) -> Result<f64, String> {
        let value = difference(&self.value, self.minus.as_ref(), json)?;
        let Some(over) = &self.over else { return Ok(value) };
        match difference(over, self.over_minus.as_ref(), json)? {
            0.0 => Err(format!("path `{over}`: the divisor is 0")),
            divisor => Ok(value / divisor),
        }
    }

    /// Whether a figure is within the bounds.
    pub fn holds(&self, figure: f64) -> bool {
        figure.is_finite()
            && self.at_least.is_none_or(|least| figure >= least)
            && self.at_most.is_none_or(|most| figure <= most)
    }
}

fn difference(value: &Path, minus: Option<&Path>, json: &Value) -> Result<f64, String> {
    let minus = minus.map_or(Ok(0.0), |minus| minus.number(json))?;
    Ok(value.number(json)? - minus)
}

/// The bounds and the claim: `at least 5 (claimed: 5 times)`.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) => write!(f, "{least} to {most}")?,
            (Some(least), None) => write!(f, "at least {least}")?,
            (None, Some(most)) => write!(f, "at most {most}")?,
            (None, None) => {}
        }
        write!(f, " (claimed: {}", self.claimed)?;
        if let Some(why) = &self.relaxed {
            write!(f, "; relaxed: {why}")?;
        }
        f.write_str(")")
    }
}

/// A figure in four digits.
pub fn shown(figure: f64) -> String {
    let size = figure.abs();
    match figure {
        _ if size >= 1000.0 || figure == 0.0 => format!("{figure:.0}"),
        _ if size >= 100.0 => format!("{figure:.1}"),
        _ if size >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expect(text: &str) -> Expect {
        toml::from_str(&format!("claimed = \"5 times\"\n{text}")).unwrap()
    }

    #[test]
    fn a_figure_is_a_value_a_difference_or_a_ratio() {
        let json = json!({ "a": 10, "b": 4, "one": 1, "zero": 0 });
        assert_eq!(expect("value = \"a\"").figure(&json), Ok(10.0));
        assert_eq!(expect("value = \"a\"\nover = \"b\"").figure(&json), Ok(2.5));
        assert_eq!(expect("value = \"a\"\nminus = \"b\"").figure(&json), Ok(6.0));
        let both = "value = \"a\"\nminus = \"b\"\nover = \"b\"\nover_minus = \"one\"";
        assert_eq!(expect(both).figure(&json), Ok(2.0));
        let error = expect("value = \"a\"\nover = \"zero\"").figure(&json).unwrap_err();
        assert!(error.contains("divisor is 0"), "{error}");
        assert!(expect("value = \"a\"\nover = \"c\"").figure(&json).is_err());
    }

    #[test]
    fn bounds_include_their_ends() {
        let both = expect("value = \"a\"\nat_least = 2\nat_most = 3.5");
        for (figure, holds) in [(1.99, false), (2.0, true), (3.5, true), (3.51, false)] {
            assert_eq!(both.holds(figure), holds, "{figure}");
        }
        assert!(!both.holds(f64::NAN));
        assert!(!expect("value = \"a\"\nat_least = 2").holds(f64::INFINITY));
        assert!(expect("value = \"a\"\nat_most = 2").holds(-1.0));
    }

    #[test]
    fn defects_are_named() {
        for (text, expected) in [
            ("value = \"a\"", "neither"),
            ("value = \"a\"\nat_least = 2\nat_most = 1", "above"),
            ("value = \"a\"\nat_least = nan", "no number"),
            ("value = \"a\"\nat_least = 1\nover_minus = \"b\"", "no `over`"),
            ("value = \"a\"\nat_most = 1\nrelaxed = \" \"", "says why"),
        ] {
            let defect = expect(text).defect().unwrap();
            assert!(defect.contains(expected), "{defect}");
        }
        assert_eq!(expect("value = \"a\"\nat_most = 1").defect(), None);
        assert!(toml::from_str::<Expect>("value = \"a[\"\nclaimed = \"x\"").is_err());
    }

    #[test]
    fn bounds_and_figures_are_shown() {
        let both = expect("value = \"a\"\nat_least = 2\nat_most = 3.5\nrelaxed = \"noise\"");
        assert_eq!(both.to_string(), "2 to 3.5 (claimed: 5 times; relaxed: noise)");
        for (figure, text) in
            [(0.0, "0"), (0.123_45, "0.1235"), (2.012, "2.01"), (382.4, "382.4"), (4170.2, "4170")]
        {
            assert_eq!(shown(figure), text);
        }
    }
}
