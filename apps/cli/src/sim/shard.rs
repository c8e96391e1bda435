//! A part of the rows here, the others elsewhere; and all of them together again.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use antiphon_replay::locks::LOCKS;
use serde_json::{Value, json};

use super::search::VARIANTS;
use super::{cases, published};
use crate::failure::Failure;

/// `I/N`: of N parts, the I-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!("'{text}' is not a part of a whole; write 1/4 to 4/4")),
        }
    }
}

impl Shard {
    /// Whether the row at `place` among all is in this part.
    pub fn has(self, place: usize) -> bool {
        place % self.of == self.number - 1
    }
}

/// What parts have printed with `--json`, as one: what is common to them, and the rows in the order
/// in which one command would have them.
///
/// # Errors
///
/// A file that can't be read or is no such report; parts of different simulations, or with the same
/// row twice.
pub fn merge(files: &[PathBuf]) -> Result<Value, Failure> {
    let mut whole: Option<Value> = None;
    let (mut rows, mut operations) = (Vec::new(), 0);
    for file in files {
        let part = read(file)?;
        let Value::Array(more) = &part["rows"] else { return Err(foreign(file)) };
        let Some(ops) = part["sim"]["ops"].as_u64() else { return Err(foreign(file)) };
        if !part["simulated"].is_object() || more.iter().any(|row| place(row).is_none()) {
            return Err(foreign(file));
        }
        rows.extend(more.iter().cloned());
        operations += ops;
        match &whole {
            None => whole = Some(part["simulated"].clone()),
            Some(whole) if *whole == part["simulated"] => {}
            Some(whole) => {
                let what = format!(
                    "{}: simulated {}, and {} {whole}: parts of different simulations don't add up",
                    file.display(),
                    part["simulated"],
                    files[0].display()
                );
                return Err(Failure::arguments(what));
            }
        }
    }
    rows.sort_by_key(place);
    if let Some(pair) = rows.windows(2).find(|pair| place(&pair[0]) == place(&pair[1])) {
        let text = |key: &str| pair[0][key].as_str().unwrap_or_default();
        let (subject, case, threads) = (text("subject"), text("case"), &pair[0]["threads"]);
        let what = format!("{subject}, {case}, threads: {threads} is there twice");
        return Err(Failure::arguments(format!("{what}; name each part once")));
    }
    let whole = whole.unwrap_or_default();
    let published = published::rows(whole["machine"].as_str().unwrap_or_default(), &rows);
    Ok(json!({
        "simulated": whole, "rows": rows, "sim": { "ops": operations }, "published": published,
    }))
}

fn read(file: &Path) -> Result<Value, Failure> {
    let read = std::fs::read(file);
    let bytes = read.map_err(|error| Failure::arguments(format!("{}: {error}", file.display())))?;
    serde_json::from_slice(&bytes).map_err(|_| foreign(file))
}

fn foreign(file: &Path) -> Failure {
    let what = "not what antiphon sim locks --json has printed";
    Failure::arguments(format!("{}: {what}", file.display()))
}

/// Where a row stands among all that there can be: by case, lock and threads.
fn place(row: &Value) -> Option<(usize, usize, u64)> {
    let case = cases::place(row["case"].as_str()?)?;
    let mut subjects = LOCKS.iter().chain(&VARIANTS);
    let subject = subjects.position(|subject| row["subject"] == subject.name)?;
    Some((case, subject, row["threads"].as_u64()?))
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
        for wrong in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/2"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
