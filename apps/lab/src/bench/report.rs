//! From repetitions to rows: a subject's repetitions beside those of the other subjects of its
//! cell, and the row computed from them.

use antiphon_report::stats::{Quartiles, median, quartiles};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::ratio::{Better, Ratio};
use super::rounds::{Cell, Measured, Rounds, Trouble};

/// The results of one subject in one cell, or in a part of one.
pub struct Row<C, S> {
    /// The subject.
    pub subject: &'static str,
    /// The peer that ratios are to.
    pub peer: Option<&'static str>,
    /// Whether the subject is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: C,
    /// Number of repetitions that count.
    pub repetitions: usize,
    /// CPUs that other processes used meanwhile, on average; not counted on a noisy machine.
    pub others_cpus: Option<f64>,
    /// Why figures are missing, entirely or in part.
    pub trouble: Option<Trouble>,
    /// The summary of the repetitions.
    pub summary: S,
}

impl<C, S: Serialize> Row<C, S> {
    /// Returns the row for scripts, with the keys of its conditions. A row in trouble has no
    /// figures.
    pub fn object(&self, conditions: Value) -> Value {
        let mut object = Map::new();
        object.insert("subject".to_owned(), json!(self.subject));
        object.insert("peer".to_owned(), json!(self.peer));
        object.insert("ours".to_owned(), json!(self.ours));
        object.insert("repetitions".to_owned(), json!(self.repetitions));
        extend(&mut object, conditions);
        if let Some(trouble) = &self.trouble {
            let (key, what) = trouble.json();
            object.insert(key.to_owned(), json!(what));
        } else {
            object.insert("others_cpus".to_owned(), json!(self.others_cpus));
            extend(&mut object, json!(self.summary));
        }
        Value::Object(object)
    }
}

/// Adds the keys of another object, which replace existing ones.
pub fn extend(object: &mut Map<String, Value>, with: Value) {
    if let Value::Object(with) = with {
        object.extend(with);
    }
}

/// The repetitions of a subject, beside those of the other subjects of its cell.
pub struct Beside<'a, C, F> {
    rounds: &'a Rounds,
    one: &'a Measured<C, F>,
    cell: &'a [Measured<C, F>],
}

impl<'a, C: Cell, F> Beside<'a, C, F> {
    /// Returns one for each measured subject and cell.
    pub fn all(
        rounds: &'a Rounds,
        measured: &'a [Measured<C, F>],
    ) -> impl Iterator<Item = Self> + 'a {
        let cells = measured.chunk_by(|a, b| a.cell == b.cell);
        cells.flat_map(move |cell| cell.iter().map(move |one| Self { rounds, one, cell }))
    }

    /// Makes the row with this summary.
    pub fn row<S>(&self, summary: S) -> Row<C, S> {
        let Measured { cell, subject, ref figures, ref trouble, .. } = *self.one;
        Row {
            subject,
            peer: self.peer().map(|peer| peer.subject),
            ours: self.rounds.subjects.contains(&subject),
            cell,
            repetitions: figures.len(),
            others_cpus: self.one.others_cpus(),
            trouble: trouble.clone(),
            summary,
        }
    }

    /// Returns the subject.
    pub fn subject(&self) -> &'static str {
        self.one.subject
    }

    /// Returns the conditions.
    pub fn cell(&self) -> C {
        self.one.cell
    }

    /// Returns the figures by repetition.
    pub fn figures(&self) -> &'a [F] {
        &self.one.figures
    }

    /// Returns the measurements of another subject in the cell.
    pub fn other(&self, name: &str) -> Option<&'a Measured<C, F>> {
        self.cell.iter().find(|other| other.subject == name)
    }

    /// Returns the first of the peers that takes part in the cell; ratios are to it.
    pub fn peer(&self) -> Option<&'a Measured<C, F>> {
        self.rounds.peers.iter().find_map(|name| self.other(name))
    }

    /// Returns a figure from each repetition that has it.
    pub fn values<V: Into<Option<f64>>>(&self, of: impl Fn(&F) -> V) -> Vec<f64> {
        values(self.one, of)
    }

    /// Returns the median of a figure.
    pub fn median<V: Into<Option<f64>>>(&self, of: impl Fn(&F) -> V) -> Option<f64> {
        median(self.values(of))
    }

    /// Returns the quartiles of a figure.
    pub fn quartiles<V: Into<Option<f64>>>(&self, of: impl Fn(&F) -> V) -> Option<Quartiles> {
        quartiles(self.values(of))
    }

    /// Returns the leading figure, with its key.
    pub fn lead<V: Into<Option<f64>>>(&self, key: &'static str, of: impl Fn(&F) -> V) -> Lead {
        Lead { key, of: self.quartiles(of) }
    }

    /// Returns the ratio of a figure to that of the peer.
    pub fn ratio<V: Into<Option<f64>>>(&self, key: &'static str, of: impl Fn(&F) -> V) -> Ratio {
        self.ratio_to(self.peer(), key, of)
    }

    /// Returns the ratio of a figure to that of another subject of the cell.
    pub fn ratio_to<V: Into<Option<f64>>>(
        &self,
        other: Option<&Measured<C, F>>,
        key: &'static str,
        of: impl Fn(&F) -> V,
    ) -> Ratio {
        let theirs = other.map_or(&[][..], |other| &other.figures);
        let pairs = self.one.figures.iter().zip(theirs);
        Ratio::of(key, pairs.filter_map(|(a, b)| Some((of(a).into()?, of(b).into()?))))
    }

    /// Returns which of these subjects has the best median of a figure.
    pub fn best<V: Into<Option<f64>>>(
        &self,
        names: &[&str],
        better: Better,
        of: impl Fn(&F) -> V,
    ) -> Option<&'a Measured<C, F>> {
        let named = self.cell.iter().filter(|one| names.contains(&one.subject));
        let judged = named.filter_map(|one| Some((median(values(one, &of))?, one)));
        let order = |a: &(f64, _), b: &(f64, _)| a.0.total_cmp(&b.0);
        let best = match better {
            Better::More => judged.max_by(order),
            Better::Less | Better::Neither => judged.min_by(order),
        };
        best.map(|(_, one)| one)
    }
}

fn values<C, F, V: Into<Option<f64>>>(one: &Measured<C, F>, of: impl Fn(&F) -> V) -> Vec<f64> {
    one.figures.iter().filter_map(|figures| of(figures).into()).collect()
}

/// The leading figure of a row, with its key in reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lead {
    /// The key.
    pub key: &'static str,
    /// The quartiles of repetitions.
    pub of: Option<Quartiles>,
}

impl Lead {
    /// Returns the figure itself.
    pub fn median(&self) -> Option<f64> {
        self.of.map(|of| of.median)
    }
}

/// `key`, `p25` and `p75`; null without figures.
impl Serialize for Lead {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([
            (self.key, self.of.map(|of| of.median)),
            ("p25", self.of.map(|of| of.p25)),
            ("p75", self.of.map(|of| of.p75)),
        ])
    }
}

/// Returns the failures of rows as one line. A subject that this machine lacks is not a failure.
pub fn failures<C, S>(rows: &[Row<C, S>]) -> Option<String> {
    Trouble::failures(rows.iter().filter_map(|row| row.trouble.as_ref()))
}

/// If no row has a repetition, returns the first subject with a reason, and its key and reason.
pub fn unmeasured<C, S>(rows: &[Row<C, S>]) -> Option<[&str; 3]> {
    let nothing = rows.iter().all(|row| row.repetitions == 0);
    let row = rows.iter().find(|row| nothing && row.trouble.is_some())?;
    let (how, why) = row.trouble.as_ref()?.json();
    Some([row.subject, how, why])
}
