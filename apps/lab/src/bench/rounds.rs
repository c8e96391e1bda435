//! Interleaved measurements, in which subjects take turns.
//!
//! Within a cell, all subjects are measured in each round, in a new order each time, so that
//! disturbances on the machine affect all alike. The first round warms caches, frequencies and page
//! tables; it is rejected.

use std::fmt::Display;

use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::neighbours::{Load, Neighbours};
use super::others::Moment;

/// The conditions of a measurement.
pub trait Cell: Copy + PartialEq + Display {
    /// Returns the other load on the machine.
    fn load(&self) -> Load;
}

/// The result of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<F> {
    /// The figures of a successful measurement.
    Figures(F),
    /// This machine lacks the subject: what is missing, and how to get it.
    Missing(String),
    /// The subject violated its contract.
    Violation(String),
}

impl<F> Outcome<F> {
    /// Converts the figures.
    pub fn map<G>(self, of: impl FnOnce(F) -> G) -> Outcome<G> {
        match self {
            Self::Figures(figures) => Outcome::Figures(of(figures)),
            Self::Missing(what) => Outcome::Missing(what),
            Self::Violation(what) => Outcome::Violation(what),
        }
    }
}

/// The result of one repetition, or one line that says why it failed.
pub type Repeated<F> = Result<Outcome<F>, String>;

/// The subjects that take turns, and the number of rounds.
#[derive(Clone, Default)]
pub struct Rounds {
    /// Our subjects.
    pub subjects: Vec<&'static str>,
    /// The peers to compare with; ratios are to the first.
    pub peers: Vec<&'static str>,
    /// Subjects that nothing is compared with, such as the machine itself.
    pub apart: Vec<&'static str>,
    /// Number of repetitions that count.
    pub repetitions: usize,
    /// Seed of the order of subjects.
    pub seed: u64,
}

/// The measurements of one subject in one cell.
pub type MeasuredOf<M> = Measured<<M as Measurement>::Cell, <M as Measurement>::Figures>;

/// Cells, and how a subject is measured in one of them.
pub trait Measurement: Sized {
    /// The conditions.
    type Cell: Cell;
    /// The figures of a repetition.
    type Figures;

    /// Returns the subjects that take turns, and the cells in the order of measurement.
    fn turns(&self) -> (&Rounds, &[Self::Cell]);

    /// Returns whether a subject takes part in a cell.
    fn takes_part(&self, _cell: &Self::Cell, _subject: &str) -> bool {
        true
    }

    /// Carries out one repetition; `counts` is false for the rejected one.
    fn repeat(
        &self,
        cell: Self::Cell,
        subject: &'static str,
        counts: bool,
    ) -> Repeated<Self::Figures>;

    /// Returns the total number of repetitions.
    fn steps(&self) -> usize {
        let (rounds, cells) = self.turns();
        let subjects = cells.iter().map(|cell| self.participants(cell).count());
        subjects.sum::<usize>() * (rounds.repetitions + 1)
    }

    /// Returns the subjects that take turns in a cell.
    fn participants(&self, cell: &Self::Cell) -> impl Iterator<Item = &'static str> {
        self.turns().0.all_subjects().filter(|subject| self.takes_part(cell, subject))
    }

    /// Measures everything, and shows the progress.
    ///
    /// # Errors
    ///
    /// As [`carry_out`](Self::carry_out).
    fn measure(&self) -> Result<Vec<MeasuredOf<Self>>, Failure> {
        self.carry_out(&mut Progress::new(self.steps()))
    }

    /// Measures everything.
    ///
    /// # Errors
    ///
    /// If this command can't start processes. A subject that fails is not an error here; its row
    /// has trouble.
    fn carry_out(&self, progress: &mut Progress) -> Result<Vec<MeasuredOf<Self>>, Failure> {
        let (rounds, cells) = self.turns();
        let (mut random, mut all) = (Random(rounds.seed), Vec::new());
        for &cell in cells {
            let neighbours = Neighbours::of(cell.load())
                .map_err(|error| Failure::measured(format!("can't start a neighbour: {error}")))?;
            let mut measured: Vec<_> = self
                .participants(&cell)
                .map(|subject| Measured::of(cell, subject, Vec::new()))
                .collect();
            for round in 0..=rounds.repetitions {
                let mut order: Vec<_> = (0..measured.len()).collect();
                random.shuffle(&mut order);
                for index in order {
                    let one = &mut measured[index];
                    if one.trouble.is_none() {
                        let (subject, counts) = (one.subject, round > 0);
                        one.add(counts, || self.repeat(cell, subject, counts));
                    }
                    progress.step(&format!("{cell}: {}", one.subject));
                }
            }
            drop(neighbours);
            all.extend(measured);
        }
        Ok(all)
    }
}

/// The measurements of one subject in one cell.
pub struct Measured<C, F> {
    /// The conditions.
    pub cell: C,
    /// Name of the subject.
    pub subject: &'static str,
    /// Figures by repetition, without the rejected one; fewer if there was trouble.
    pub figures: Vec<F>,
    /// CPUs that other processes used meanwhile, by repetition.
    pub others: Vec<f64>,
    /// Why figures are missing: the subject is missing, broken, or never ended.
    pub trouble: Option<Trouble>,
}

/// Why a subject could not be measured.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// This machine lacks the subject.
    Missing(String),
    /// The subject failed.
    Failed(String),
}

impl Rounds {
    /// Returns our subjects, the peers and the subjects apart.
    pub fn all_subjects(&self) -> impl Iterator<Item = &'static str> {
        self.subjects.iter().chain(&self.peers).chain(&self.apart).copied()
    }
}

impl<C: Cell, F> Measured<C, F> {
    /// The repetitions of a subject without trouble.
    pub fn of(cell: C, subject: &'static str, figures: Vec<F>) -> Self {
        Self { cell, subject, figures, others: Vec::new(), trouble: None }
    }

    fn add(&mut self, counts: bool, repeat: impl FnOnce() -> Repeated<F>) {
        let before = Moment::now();
        let outcome = repeat();
        // The load of the neighbours that this command has started is known.
        if self.cell.load() == Load::Idle {
            self.others.extend(before.and_then(|moment| moment.others_since()));
        }
        match outcome {
            Ok(Outcome::Missing(what)) => self.trouble = Some(Trouble::Missing(what)),
            Ok(Outcome::Figures(figures)) if counts => self.figures.push(figures),
            Ok(Outcome::Figures(_)) => {}
            Ok(Outcome::Violation(what)) | Err(what) => {
                let what = format!("{} ({}): {what}", self.subject, self.cell);
                self.trouble = Some(Trouble::Failed(what));
            }
        }
    }

    /// Returns the CPUs that other processes used, on average.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.others.iter().copied())
    }
}

impl Trouble {
    /// Returns the key and the text in JSON.
    pub fn json(&self) -> (&'static str, &str) {
        match self {
            Self::Missing(what) => ("skipped", what),
            Self::Failed(what) => ("failed", what),
        }
    }

    /// Returns the failures among these as one line. Subjects that this machine lacks are not
    /// failures.
    pub fn failures<'a>(all: impl Iterator<Item = &'a Self>) -> Option<String> {
        let failed = all.filter_map(|trouble| match trouble {
            Self::Failed(what) => Some(what.as_str()),
            Self::Missing(_) => None,
        });
        let failed: Vec<_> = failed.collect();
        (!failed.is_empty()).then(|| failed.join("; "))
    }
}

/// Returns the mean of the values, if there are any.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fmt;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Place(u32);

    impl Cell for Place {
        fn load(&self) -> Load {
            Load::Idle
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "place {}", self.0)
        }
    }

    /// Returns the number of repetitions so far as figures, unless `fails` returns a result for a
    /// subject.
    struct Counting {
        rounds: Rounds,
        cells: Vec<Place>,
        calls: RefCell<Vec<(Place, &'static str)>>,
        fails: fn(&str) -> Option<Repeated<usize>>,
    }

    impl Measurement for Counting {
        type Cell = Place;
        type Figures = usize;

        fn turns(&self) -> (&Rounds, &[Place]) {
            (&self.rounds, &self.cells)
        }

        fn takes_part(&self, cell: &Place, subject: &str) -> bool {
            cell.0 < 9 || subject == "apart"
        }

        fn repeat(&self, cell: Place, subject: &'static str, _counts: bool) -> Repeated<usize> {
            self.calls.borrow_mut().push((cell, subject));
            let figures = Outcome::Figures(self.calls.borrow().len());
            (self.fails)(subject).unwrap_or(Ok(figures))
        }
    }

    fn counting(cells: &[u32]) -> Counting {
        let rounds = Rounds {
            subjects: vec!["ours"],
            peers: vec!["one", "other"],
            repetitions: 3,
            seed: 1,
            ..Rounds::default()
        };
        let cells = cells.iter().copied().map(Place).collect();
        Counting { rounds, cells, calls: RefCell::default(), fails: |_| None }
    }

    #[test]
    fn all_take_turns_and_the_first_round_does_not_count() {
        let counting = counting(&[1, 2]);
        let Ok(measured) = counting.measure() else { panic!("nothing is started") };
        let calls = counting.calls.borrow();
        assert_eq!(calls.len(), counting.steps());
        for round in calls.chunks(3) {
            for subject in counting.rounds.all_subjects() {
                assert!(round.iter().any(|call| call.1 == subject), "{subject} in {round:?}");
            }
        }
        assert_eq!(measured.len(), 6);
        for one in &measured {
            let first = if one.cell == Place(1) { 3 } else { 15 };
            assert!(one.figures.len() == 3 && one.figures.iter().all(|&call| call > first));
        }
    }

    #[test]
    fn a_cell_is_measured_of_those_that_have_a_part_in_it() {
        let mut counting = counting(&[8, 9]);
        counting.rounds.apart = vec!["apart"];
        let Ok(measured) = counting.measure() else { panic!("nothing is started") };
        let subjects: Vec<_> = measured.iter().map(|one| (one.cell.0, one.subject)).collect();
        let all = [(8, "ours"), (8, "one"), (8, "other"), (8, "apart"), (9, "apart")];
        assert_eq!((subjects, counting.steps()), (all.to_vec(), 20));
    }

    #[test]
    fn who_is_in_trouble_is_asked_no_more() {
        let mut counting = counting(&[7]);
        counting.fails = |subject| match subject {
            "ours" => Some(Err("it hangs".to_owned())),
            "one" => Some(Ok(Outcome::Missing("not here".to_owned()))),
            _ => None,
        };
        let Ok(measured) = counting.measure() else { panic!("nothing is started") };
        let calls = counting.calls.borrow();
        assert_eq!(calls.iter().filter(|call| call.1 == "ours").count(), 1);
        let troubles = || measured.iter().filter_map(|one| one.trouble.as_ref());
        assert_eq!(Trouble::failures(troubles()), Some("ours (place 7): it hangs".to_owned()));
        assert_eq!(troubles().count(), 2);
    }
}
