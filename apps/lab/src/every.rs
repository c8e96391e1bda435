//! All combinations of lists of choices.

/// A list of `$one`s, one for each combination of the lists' values; the values of the last list
/// vary fastest.
macro_rules! every {
    ($($name:ident in $list:expr),+ => $one:expr) => {{
        let mut all = Vec::new();
        $crate::every::every!(@ all, $one; $($name in $list,)+);
        all
    }};
    (@ $all:ident, $one:expr;) => { $all.push($one) };
    (@ $all:ident, $one:expr; $name:ident in $list:expr, $($rest:tt)*) => {
        for &$name in $list {
            $crate::every::every!(@ $all, $one; $($rest)*);
        }
    };
}

pub(crate) use every;

#[cfg(test)]
mod tests {
    #[test]
    fn each_combination_is_there_once_and_the_last_list_changes_first() {
        let (letters, numbers) = (['a', 'b'], [1, 2, 3]);
        let all = every!(letter in &letters, number in &numbers => (letter, number));
        assert_eq!(all, [('a', 1), ('a', 2), ('a', 3), ('b', 1), ('b', 2), ('b', 3)]);
    }
}
