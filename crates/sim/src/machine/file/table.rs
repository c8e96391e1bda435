//! The tables of a machine file. The reader requests each known key once; keys that were not
//! requested are unknown.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::wrong::Wrong;

/// A position in the text.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl Place<'_> {
    pub(super) fn line(self) -> usize {
        self.text.as_bytes()[..self.at.min(self.text.len())].iter().filter(|&&b| b == b'\n').count()
            + 1
    }

    pub(super) fn wrong(self, what: impl Into<String>) -> Wrong {
        Wrong { line: self.line(), what: what.into() }
    }
}

/// A value, its name, and its position.
pub(super) struct Value<'a> {
    pub(super) name: String,
    pub(super) place: Place<'a>,
    pub(super) value: DeValue<'a>,
}

impl<'a> Value<'a> {
    fn expected(&self, what: &str) -> Wrong {
        let found = self.value.type_str();
        self.place.wrong(format!("{} is {what}, not of type {found}", self.name))
    }

    pub(super) fn table(self) -> Result<Table<'a>, Wrong> {
        match self.value {
            DeValue::Table(entries) => {
                Ok(Table { name: self.name, place: self.place, entries, known: Vec::new() })
            }
            _ => Err(self.expected("a table")),
        }
    }

    pub(super) fn text(self) -> Result<String, Wrong> {
        match &self.value {
            DeValue::String(text) if text.trim().is_empty() => {
                Err(self.place.wrong(format!("{} is empty", self.name)))
            }
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    pub(super) fn truth(self) -> Result<bool, Wrong> {
        match self.value {
            DeValue::Boolean(truth) => Ok(truth),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(self, least: u32, most: u32) -> Result<u32, Wrong> {
        let wanted = format!("a whole number of {least} to {most}");
        let DeValue::Integer(digits) = &self.value else { return Err(self.expected(&wanted)) };
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).unwrap_or(i128::MAX);
        match u32::try_from(number) {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.place.wrong(format!("{} is {wanted}, not {digits}", self.name))),
        }
    }

    /// Any finite number.
    pub(super) fn number(self) -> Result<f64, Wrong> {
        let (number, written) = match &self.value {
            DeValue::Integer(digits) => {
                let number = i128::from_str_radix(digits.as_str(), digits.radix());
                (number.ok().map(|number| number as f64), digits.as_str())
            }
            DeValue::Float(digits) => {
                (digits.as_str().replace('_', "").parse().ok(), digits.as_str())
            }
            _ => return Err(self.expected("a number")),
        };
        let number = number.filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| {
            let what = format!("{} is {written}: a number like 45 or 1.5 is possible", self.name);
            self.place.wrong(what)
        })
    }

    /// The values of an array, or the value itself if it is not an array.
    pub(super) fn one_or_more(self) -> Vec<Self> {
        match self.value {
            DeValue::Array(values) => elements(&self.name, self.place, values),
            _ => vec![self],
        }
    }

    pub(super) fn array(self) -> Result<Vec<Self>, Wrong> {
        match self.value {
            DeValue::Array(values) => Ok(elements(&self.name, self.place, values)),
            _ => Err(self.expected("an array")),
        }
    }
}

fn elements<'a>(name: &str, place: Place<'a>, values: DeArray<'a>) -> Vec<Value<'a>> {
    let element = |(number, value): (usize, Spanned<DeValue<'a>>)| Value {
        name: format!("{name}[{number}]"),
        place: Place { at: value.span().start, ..place },
        value: value.into_inner(),
    };
    values.into_iter().enumerate().map(element).collect()
}

/// A table whose keys are requested one by one.
pub(super) struct Table<'a> {
    /// Empty for the top level of the file.
    pub(super) name: String,
    pub(super) place: Place<'a>,
    entries: DeTable<'a>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    pub(super) fn of_file(text: &'a str) -> Result<Self, Wrong> {
        let start = Place { text, at: 0 };
        let entries = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Place { at, ..start }.wrong(error.message().replace('\n', ", "))
        })?;
        let entries = entries.into_inner();
        Ok(Self { name: String::new(), place: start, entries, known: Vec::new() })
    }

    pub(super) fn optional(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let value = self.entries.remove(key)?;
        let name = match self.name.as_str() {
            "" => key.to_owned(),
            table => format!("{table}.{key}"),
        };
        let place = Place { at: value.span().start, ..self.place };
        Some(Value { name, place, value: value.into_inner() })
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<Value<'a>, Wrong> {
        self.optional(key).ok_or_else(|| {
            let table = if self.name.is_empty() { "the file" } else { &self.name };
            match self.entries.keys().find(|there| is_like(there.get_ref(), key)) {
                Some(there) => {
                    let place = Place { at: there.span().start, ..self.place };
                    place.wrong(format!("{table} has no {key}, but {}", there.get_ref()))
                }
                None => self.place.wrong(format!("{table} has no {key}")),
            }
        })
    }

    /// Checks that every key of the table has been requested.
    pub(super) fn end(self) -> Result<(), Wrong> {
        let keys = self.entries.iter().map(|(key, _)| key);
        let Some(key) = keys.min_by_key(|key| key.span().start) else { return Ok(()) };
        let place = Place { at: key.span().start, ..self.place };
        let table = if self.name.is_empty() { "the file" } else { &self.name };
        let known = self.known.join(", ");
        Err(place.wrong(format!("unknown key {} in {table}: there are {known}", key.get_ref())))
    }
}

/// Returns whether `written` may be a typing error for `meant`: one letter more, less or different,
/// or two letters swapped.
fn is_like(written: &str, meant: &str) -> bool {
    let [written, meant]: [Vec<char>; 2] = [written, meant].map(|name| name.chars().collect());
    let same = written.iter().zip(&meant).take_while(|(one, other)| one == other).count();
    let (written, meant) = (&written[same..], &meant[same..]);
    let rest = |of_written, of_meant| {
        written.get(of_written..).is_some_and(|rest| meant.get(of_meant..) == Some(rest))
    };
    let swapped = matches!((written, meant), ([a, b, ..], [c, d, ..]) if a == d && b == c);
    rest(1, 0) || rest(0, 1) || rest(1, 1) || (swapped && rest(2, 2))
}
