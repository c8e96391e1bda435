//! The numbers of a machine file and their sources.

use super::bound::Span;
use super::table::{Table, Value};
use super::wrong::Wrong;

/// The reliability of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Computed from measurements that its source cites.
    Measured,
    /// Stated in its source.
    Published,
    /// Known from the literature, not checked against its text.
    Recalled,
    /// Derived from numbers of a related machine, or chosen.
    Estimated,
}

impl Kind {
    /// All kinds, the most reliable first.
    pub const ALL: [Self; 4] = [Self::Measured, Self::Published, Self::Recalled, Self::Estimated];

    /// The name of the kind in machine files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Recalled => "recalled",
            Self::Estimated => "estimated",
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, whatever unit the file uses.
    Ns,
    /// A factor of duration.
    Times,
    /// A number of things.
    Count,
}

/// A number of a machine file.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its name, such as `level.socket.transfer` or `os.slice`.
    pub name: String,
    /// Its value in the file, in its unit.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Its reliability.
    pub kind: Kind,
    /// Its source.
    pub source: String,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// The largest count.
const MOST: u32 = 65_536;
/// The largest factor by which work may take longer.
const SLOWEST: f64 = 100.0;

/// Collects the numbers of a file as they are read.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) numbers: Vec<Number>,
}

impl Reader {
    /// A time in whole nanoseconds, more than 0.
    pub(super) fn time(&mut self, value: Value<'_>, span: Span) -> Result<u64, Wrong> {
        let place = value.place;
        let name = value.name.clone();
        match self.time_or_none(value, span)? {
            0 => Err(place.wrong(format!("{name} is 0: it must be more than 0"))),
            ns => Ok(ns),
        }
    }

    /// A time in whole nanoseconds. A positive time below 1 ns becomes 1; 0 stays 0.
    pub(super) fn time_or_none(&mut self, value: Value<'_>, span: Span) -> Result<u64, Wrong> {
        let place = value.place;
        let name = value.name.clone();
        let mut table = sourced(value, "{ ns = 45")?;
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6)];
        let mut found = units.map(|(key, ns)| table.optional(key).map(|value| (value, ns)));
        let (value, ns) = match found.iter().flatten().count() {
            1 => found.iter_mut().find_map(Option::take).expect("one is there"),
            _ => return Err(place.wrong(format!("{name} needs exactly one of ns, us and ms"))),
        };
        let ns = value.number()? * ns;
        if !(0.0..=span.most_ns() as f64).contains(&ns) {
            let most = span.most();
            let what = format!(
                "{name} is {ns} ns: it must be from 0 to {most}; with more, simulations would be \
                taken for stuck"
            );
            return Err(place.wrong(what));
        }
        self.keep(name, ns, Unit::Ns, table)?;
        Ok(if ns > 0.0 { (ns.round() as u64).max(1) } else { 0 })
    }

    /// A factor of duration, in thousandths.
    pub(super) fn permille(&mut self, value: Value<'_>) -> Result<u32, Wrong> {
        let place = value.place;
        let name = value.name.clone();
        let mut table = sourced(value, "{ times = 1.5")?;
        let times = table.required("times")?.number()?;
        if !(0.01..=SLOWEST).contains(&times) {
            let what = format!("{name} is {times} times: it must be from 0.01 to {SLOWEST}");
            return Err(place.wrong(what));
        }
        self.keep(name, times, Unit::Times, table)?;
        Ok((times * 1e3).round() as u32)
    }

    /// A count, at least 1.
    pub(super) fn count(&mut self, value: Value<'_>) -> Result<u32, Wrong> {
        let name = value.name.clone();
        let mut table = sourced(value, "{ count = 32")?;
        let count = table.required("count")?.count(1, MOST)?;
        self.keep(name, f64::from(count), Unit::Count, table)?;
        Ok(count)
    }

    fn keep(
        &mut self,
        name: String,
        value: f64,
        unit: Unit,
        mut table: Table<'_>,
    ) -> Result<(), Wrong> {
        let place = table.place;
        let of = |kind: Kind| table.optional(kind.name()).map(|source| (kind, source));
        let mut sources: Vec<_> = Kind::ALL.into_iter().filter_map(of).collect();
        let known = Kind::ALL.map(Kind::name).join(", ");
        let Some((kind, source)) = sources.pop() else {
            // A misspelt key makes a better message than a missing one.
            table.end()?;
            let what = format!("{name} has no source: it needs one of {known} = \"where from\"");
            return Err(place.wrong(what));
        };
        if !sources.is_empty() {
            return Err(place.wrong(format!("{name} has two sources: it needs one of {known}")));
        }
        let source = source.text()?;
        table.end()?;
        self.numbers.push(Number { name, value, unit, kind, source, line: place.line() });
        Ok(())
    }
}

/// Reads the table of a number with its source.
fn sourced<'a>(value: Value<'a>, example: &str) -> Result<Table<'a>, Wrong> {
    let place = value.place;
    let name = value.name.clone();
    value.table().map_err(|_| {
        let example = format!("{example}, measured = \"where from\" }}");
        place.wrong(format!("{name} is a number with its source, like {example}"))
    })
}
