//! A tree of forks whose result and number of forks are known: the Fibonacci numbers.

/// The result of a tree of forks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The Fibonacci number.
    pub result: u64,
    /// The number of forks that were joined.
    pub joins: u64,
}

/// Runs the tree for `n`: calls `leaf` in each leaf; `fork` runs the trees of two numbers, and
/// joins them.
#[inline]
pub fn fork_with(
    n: u32,
    leaf: impl FnOnce(),
    fork: impl FnOnce(u32, u32) -> (Counted, Counted),
) -> Counted {
    if n < 2 {
        leaf();
        return Counted { result: n.into(), joins: 0 };
    }
    let (one, other) = fork(n - 1, n - 2);
    Counted { result: one.result + other.result, joins: one.joins + other.joins + 1 }
}

/// Returns the result that the tree for `n` must have.
pub fn expected(n: u32) -> Counted {
    let mut pair = (Counted { result: 0, joins: 0 }, Counted { result: 1, joins: 0 });
    for _ in 0..n {
        let (one, other) = pair;
        let joins = one.joins + other.joins + 1;
        pair = (other, Counted { result: one.result + other.result, joins });
    }
    pair.0
}
