//! Paths into the JSON that a command prints: `rows[subject=ipi,threads=64].p50_ns`.
//!
//! Names are keys of objects. `name[key=value,…]` is the only row of the list `name` whose keys
//! have these values; numbers are compared as numbers, other values as text.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Path {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// The keys and values that select a row, if the name is that of a list.
    row: Vec<(String, String)>,
}

impl TryFrom<String> for Path {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let steps = parse(&text).map_err(|why| format!("path `{text}`: {why}"))?;
        Ok(Self { text, steps })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    /// The number at this path.
    ///
    /// # Errors
    ///
    /// If a name does not exist, not exactly one row fits, or the value is not a number; the text
    /// names the step and what was found instead.
    pub fn number(&self, json: &Value) -> Result<f64, String> {
        self.find(json).map_err(|why| format!("path `{self}`: {why}"))
    }

    fn find(&self, json: &Value) -> Result<f64, String> {
        let mut at = json;
        for step in &self.steps {
            at = at.get(&step.name).ok_or_else(|| {
                let there = at.as_object().map_or("no object".to_owned(), |object| {
                    object.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
                });
                format!("no `{}`; there is: {there}", step.name)
            })?;
            if !step.row.is_empty() {
                at = step.only_row(at)?;
            }
        }
        at.as_f64().ok_or_else(|| format!("the end is no number but {}", kind(at)))
    }
}

impl Step {
    fn only_row<'a>(&self, list: &'a Value) -> Result<&'a Value, String> {
        let rows = list
            .as_array()
            .ok_or_else(|| format!("`{}` is no list but {}", self.name, kind(list)))?;
        let is_meant = |row: &&Value| {
            self.row.iter().all(|(key, wanted)| row.get(key).is_some_and(|is| equals(is, wanted)))
        };
        let mut found = rows.iter().filter(is_meant);
        match (found.next(), found.count()) {
            (Some(row), 0) => Ok(row),
            (first, more) => {
                let count = more + usize::from(first.is_some());
                let keys: Vec<_> = self.row.iter().map(|(k, v)| format!("{k}={v}")).collect();
                let (name, all, keys) = (&self.name, rows.len(), keys.join(","));
                Err(format!("{count} of the {all} rows of `{name}` have {keys}, and not one"))
            }
        }
    }
}

fn equals(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Number(number) => {
            wanted.parse().is_ok_and(|wanted: f64| number.as_f64() == Some(wanted))
        }
        Value::Bool(is) => wanted == if *is { "true" } else { "false" },
        Value::Null => wanted == "null",
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() || name.contains(']') {
            return Err("a name is missing, or a `]` has no `[`".to_owned());
        }
        let (row, after) = match after.strip_prefix('[') {
            Some(inside) => {
                let (keys, after) = inside.split_once(']').ok_or("a `[` has no `]`")?;
                (pairs(keys).iter().map(|one| pair(one)).collect::<Result<_, _>>()?, after)
            }
            None => (Vec::new(), after),
        };
        steps.push(Step { name: name.to_owned(), row });
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(steps),
            None => return Err(format!("`{after}` follows a `]`")),
        }
    }
}

/// Splits at commas, but not within a value: ", " without an `=` behind it goes on with the value.
fn pairs(keys: &str) -> Vec<String> {
    let mut pairs: Vec<String> = Vec::new();
    for part in keys.split(',') {
        match pairs.last_mut() {
            Some(before) if part.starts_with(' ') && !part.contains('=') => {
                before.push(',');
                before.push_str(part);
            }
            _ => pairs.push(part.to_owned()),
        }
    }
    pairs
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` is not key=value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(path: &str) -> Result<f64, String> {
        let json = json!({
            "seed": 1,
            "machine": { "cpus": 2, "cpu": "x" },
            "rows": [
                { "subject": "ipi", "threads": 64, "p50_ns": 598.0, "model": true },
                { "subject": "ipi", "threads": 16, "p50_ns": 550.0, "model": true },
                { "subject": "event", "threads": 64, "p50_ns": 5739.0, "none": null },
                { "subject": "one, then two", "threads": 1, "p50_ns": 7.0 },
                "no row",
            ],
        });
        Path::try_from(path.to_owned())?.number(&json)
    }

    #[test]
    fn names_and_rows_lead_to_a_number() {
        for (path, expected) in [
            ("seed", 1.0),
            ("machine.cpus", 2.0),
            ("rows[subject=event].p50_ns", 5739.0),
            ("rows[subject=ipi,threads=16].p50_ns", 550.0),
            ("rows[threads = 64.0, subject = ipi].p50_ns", 598.0),
            ("rows[model=true,threads=16].threads", 16.0),
            ("rows[subject=one, then two,threads=1].p50_ns", 7.0),
            ("rows[none=null].p50_ns", 5739.0),
        ] {
            assert_eq!(look(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn errors_say_what_is_there() {
        for (path, expected) in [
            ("sed", "no `sed`; there is: machine, rows, seed"),
            ("seed.more", "no `more`; there is: no object"),
            ("machine.cpu", "no number but text"),
            ("machine", "no number but an object"),
            ("rows", "no number but a list"),
            ("rows[subject=ipi].p50_ns", "2 of the 5 rows of `rows` have subject=ipi"),
            ("rows[subject=none].p50_ns", "0 of the 5 rows"),
            ("seed[a=b]", "`seed` is no list but a number"),
        ] {
            let error = look(path).unwrap_err();
            assert!(error.contains(expected) && error.contains(path), "{path}: {error}");
        }
    }

    #[test]
    fn a_malformed_path_is_an_error() {
        for path in
            ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[b]", "a[b=]", "a[=b]", "a]", "a[b=c]d"]
        {
            assert!(Path::try_from(path.to_owned()).is_err(), "{path}");
        }
    }
}
