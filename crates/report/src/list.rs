//! LIST arguments: `2,4,8-11`, and names separated by commas.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Thread counts, as given: `2,4,8-11`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<usize>);

/// More threads than this in one process are a typing error.
const MOST: usize = 4096;

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        numbers(text, 1..=MOST, "2,4,8 or 2-8").map(Self)
    }
}

/// CPUs as the kernel numbers them, each once: `0,2-5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<usize>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = numbers(text, 0..=MOST - 1, "1 or 0,2-5")?;
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

/// The numbers and ranges in `text`, each of which must be `within` bounds.
fn numbers(text: &str, within: RangeInclusive<usize>, example: &str) -> Result<Vec<usize>, String> {
    let (least, most) = (within.start(), within.end());
    let number = |text: &str| {
        text.trim().parse().ok().filter(|number| within.contains(number)).ok_or_else(|| {
            format!("'{text}' is not a number from {least} to {most}; write {example}")
        })
    };
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => numbers.push(number(part)?),
            Some((from, to)) => {
                let (from, to): (usize, usize) = (number(from)?, number(to)?);
                if from > to {
                    return Err(format!("'{part}' runs backwards; write {to}-{from}"));
                }
                numbers.extend(from..=to);
            }
        }
    }
    Ok(numbers)
}

/// Shares of reads, in hundredths: `100,90,50`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares(pub Vec<u32>);

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |text: &str| {
            text.trim().parse().ok().filter(|share| (0..=100).contains(share)).ok_or_else(|| {
                format!("'{text}' is not a percentage of reads from 0 to 100; write 100,90,50")
            })
        };
        text.split(',').map(share).collect::<Result<_, _>>().map(Self)
    }
}

/// The names in `text`, each of which must be one of `known`; an empty list gives no names.
///
/// # Errors
///
/// One line: the unknown name, and the known ones.
pub fn names<'a>(what: &str, text: &str, known: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let mut names = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let Some(found) = known.iter().find(|known| **known == name) else {
            let (near, all) = (near(name, known), known.join(", "));
            return Err(format!("no {what} '{name}'{near}; there are: {all}"));
        };
        if !names.contains(found) {
            names.push(*found);
        }
    }
    Ok(names)
}

/// A suggestion of a similar known name: ` (did you mean 'std'?)`, or nothing.
pub fn near(name: &str, known: &[&str]) -> String {
    let likeness = known.iter().map(|known| (strsim::jaro_winkler(name, known), known));
    match likeness.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
        Some((likeness, near)) if likeness >= LIKE => format!(" (did you mean '{near}'?)"),
        _ => String::new(),
    }
}

/// Similarity from which on a name is suggested.
const LIKE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_ranges() {
        let of = |text: &str| text.parse().map(|Counts(counts)| counts);
        assert_eq!(of("2"), Ok(vec![2]));
        assert_eq!(of("2, 4,8-11"), Ok(vec![2, 4, 8, 9, 10, 11]));
        for wrong in ["", "0", "x", "4-2", "2,,3", "-3", "2-", "99999"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpus_begin_with_0_and_are_there_once() {
        let of = |text: &str| text.parse().map(|Cpus(cpus)| cpus);
        assert_eq!(of("5,0,2-3,2"), Ok(vec![0, 2, 3, 5]));
        for wrong in ["", "-1", "x", "3-2", "4096", "all"] {
            assert!(of(wrong).is_err_and(|why: String| why.contains("write")), "{wrong}");
        }
    }

    #[test]
    fn shares_are_of_a_hundred() {
        let of = |text: &str| text.parse().map(|Shares(shares)| shares);
        assert_eq!(of("100, 99,0"), Ok(vec![100, 99, 0]));
        for wrong in ["", "101", "-1", "x", "9,,5", "50%"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_known_and_kept_in_order_once() {
        let known = ["glibc", "std", "absl"];
        assert_eq!(names("lock", "std,glibc,std", &known), Ok(vec!["std", "glibc"]));
        assert_eq!(names("lock", "", &known), Ok(vec![]));
        let wrong = names("lock", "glibc,mutex", &known);
        assert_eq!(wrong, Err("no lock 'mutex'; there are: glibc, std, absl".to_owned()));
        let near = names("lock", "glib", &known).expect_err("none of that name");
        assert_eq!(near, "no lock 'glib' (did you mean 'glibc'?); there are: glibc, std, absl");
    }
}
