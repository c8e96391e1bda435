//! Fairness as one number.

/// Jain's index of `counts`: 1 when all are equal, `1/n` when one has everything.
///
/// `None` where there is nothing to share: no counts, or all of them zero.
#[must_use]
pub fn jain(counts: impl IntoIterator<Item = u64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for count in counts {
        let count = count as f64;
        n += 1.0;
        sum += count;
        squares += count * count;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn equal_shares_are_one_and_a_monopoly_is_one_nth() {
        assert_eq!(jain([7, 7, 7, 7]), Some(1.0));
        assert_eq!(jain([0, 0, 9, 0]), Some(0.25));
        assert_eq!(jain([1, 3]), Some(0.8));
    }

    #[test]
    fn nothing_has_no_fairness() {
        assert_eq!(jain([]), None);
        assert_eq!(jain([0, 0]), None);
    }
}
