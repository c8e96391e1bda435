//! The best local alignment of two sequences (Smith and Waterman, "Identification of common
//! molecular subsequences", Journal of Molecular Biology 147, 1981), row by row; the cost of a gap
//! is proportional to its length.

use antiphon_report::stats::Random;

/// Score of two equal letters.
const SAME: i32 = 2;
/// Score of two different letters.
const OTHER: i32 = -1;
/// Score of a letter opposite a gap.
const GAP: i32 = -1;

/// Two sequences.
pub struct Pair {
    one: Box<[u8]>,
    other: Box<[u8]>,
}

impl Pair {
    /// A random pair of DNA sequences of `letters` letters each.
    pub fn drawn(letters: usize, random: &mut Random) -> Self {
        let mut draw = || (0..letters).map(|_| b"ACGT"[(random.draw() % 4) as usize]).collect();
        Self { one: draw(), other: draw() }
    }
}

/// A row of the table: scores of the best alignments that end in each cell.
pub struct Rows<'a> {
    pair: &'a Pair,
    /// Number of finished rows.
    done: usize,
    /// Scores of the last row; the first is the column before any letter.
    scores: Vec<i32>,
    best: i32,
}

impl<'a> Rows<'a> {
    /// The table before its first row.
    pub fn new(pair: &'a Pair) -> Self {
        Self { pair, done: 0, scores: vec![0; pair.other.len() + 1], best: 0 }
    }

    /// Computes the next row. Returns whether another follows.
    pub fn next(&mut self) -> bool {
        let letter = self.pair.one[self.done];
        // The score of the row above, one column to the left.
        let mut corner = 0;
        for (at, &other) in self.pair.other.iter().enumerate() {
            let above = self.scores[at + 1];
            let pairs = corner + if letter == other { SAME } else { OTHER };
            let score = pairs.max(above + GAP).max(self.scores[at] + GAP).max(0);
            self.scores[at + 1] = score;
            self.best = self.best.max(score);
            corner = above;
        }
        self.done += 1;
        self.done < self.pair.one.len()
    }

    /// Returns the score of the best alignment so far.
    pub fn best(&self) -> i32 {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(one: &[u8], other: &[u8]) -> i32 {
        let pair = Pair { one: one.into(), other: other.into() };
        let mut rows = Rows::new(&pair);
        while rows.next() {}
        rows.best()
    }

    /// The best score of an alignment of both sequences in full, by trying all.
    fn whole(one: &[u8], other: &[u8]) -> i32 {
        match (one, other) {
            ([], rest) | (rest, []) => rest.len() as i32 * GAP,
            ([a, one_left @ ..], [b, other_left @ ..]) => {
                let pairs = if a == b { SAME } else { OTHER };
                (pairs + whole(one_left, other_left))
                    .max(GAP + whole(one_left, other))
                    .max(GAP + whole(one, other_left))
            }
        }
    }

    /// The best score over all parts of both sequences.
    fn naive(one: &[u8], other: &[u8]) -> i32 {
        let parts = |all: &[u8]| {
            let ends = (0..=all.len()).flat_map(|end| (0..=end).map(move |begin| (begin, end)));
            ends.collect::<Vec<_>>()
        };
        let mut best = 0;
        for (a, b) in parts(one) {
            for (c, d) in parts(other) {
                best = best.max(whole(&one[a..b], &other[c..d]));
            }
        }
        best
    }

    #[test]
    fn rows_find_what_trying_all_finds() {
        let mut random = Random(7);
        for letters in 1..=6 {
            for _ in 0..6 {
                let Pair { one, other } = Pair::drawn(letters, &mut random);
                assert_eq!(best(&one, &other), naive(&one, &other), "{one:?} {other:?}");
            }
        }
    }

    /// Six letters in a row, with a gap opposite one letter of the second sequence: AC-GTTA.
    #[test]
    fn a_gap_costs_once_for_each_letter() {
        assert_eq!(best(b"ACGTTA", b"ACCGTTA"), 6 * SAME + GAP);
        assert_eq!(best(b"AAAA", b"TTTT"), 0);
        assert_eq!(best(b"TTTTACGT", b"ACGTCCCC"), 4 * SAME);
    }
}
