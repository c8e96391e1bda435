//! Names of the values of options, which also appear in reports; and lists of such values.

use std::str::FromStr;

use antiphon_report::list::names;
use clap::ValueEnum;

/// A value with a name on the command line.
pub trait Named: ValueEnum {
    /// Returns the name.
    fn name(&self) -> String;
}

impl<T: ValueEnum> Named for T {
    fn name(&self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The requested cases, each once.
#[derive(Clone)]
pub struct Cases<T>(pub Vec<T>);

impl<T: ValueEnum> FromStr for Cases<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known: Vec<_> = T::value_variants().iter().map(Named::name).collect();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let asked = names("case", text, &known)?;
        if asked.is_empty() {
            return Err(format!("nothing to measure; there are: {}", known.join(", ")));
        }
        let of_name = |name: &&str| known.iter().position(|known| known == name);
        let places = asked.iter().filter_map(of_name);
        Ok(Self(places.map(|place| T::value_variants()[place].clone()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
    #[value(rename_all = "snake_case")]
    enum Case {
        Echo,
        HttpKept,
    }

    #[test]
    fn cases_are_known_by_their_names() {
        let of = |text: &str| text.parse().map(|Cases(cases)| cases);
        assert_eq!(of("http_kept, echo,echo"), Ok(vec![Case::HttpKept, Case::Echo]));
        for wrong in ["", "ftp"] {
            assert!(of(wrong).is_err_and(|why| why.contains("there are: echo, http_kept")));
        }
    }
}
