//! A part of the rows, to distribute a simulation over several machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `I/N`: the I-th of N parts. Rows are dealt to the parts in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    pub number: usize,
    pub of: usize,
}

/// Maximal number of parts; a larger number is a typing error.
const MOST: usize = 4096;

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if of <= MOST && (1..=of).contains(&number) => {
                Ok(Self { number, of })
            }
            _ => {
                let most = format!("of at most {MOST} parts");
                Err(format!("'{text}' is not a part of a whole; write 1/4 to 4/4, {most}"))
            }
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl Shard {
    /// All rows.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Returns how many of `rows` rows are in this part.
    pub fn share(self, rows: usize) -> usize {
        rows / self.of + usize::from(self.number <= rows % self.of)
    }

    /// Returns whether the row at index `place` is in this part.
    pub fn has(self, place: usize) -> bool {
        place % self.of == self.number - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_a_whole() {
        let of = |text: &str| text.parse::<Shard>();
        let (one, three) = (of("1/3").expect("a part"), of("3/3").expect("a part"));
        let in_one: Vec<_> = (0..7).filter(|&place| one.has(place)).collect();
        assert_eq!(in_one, [0, 3, 6]);
        assert!(three.has(2) && !three.has(3));
        let (of_7, of_9) = (|part: Shard| part.share(7), |part: Shard| part.share(9));
        assert_eq!((of_7(one), of_7(three), of_9(one), of_9(three)), (3, 2, 3, 3));
        assert_eq!((one.to_string(), Shard::WHOLE.share(7)), ("1/3".to_owned(), 7));
        for wrong in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/2", "1/4097"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
