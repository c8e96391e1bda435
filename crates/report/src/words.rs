//! Numbers and what they count.

/// The noun as it stands behind that number: `thread`, `threads`; `process`, `processes`.
pub fn noun(number: u64, one: &str) -> String {
    match number {
        1 => one.to_owned(),
        _ if one.ends_with('s') => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

/// The number in full, and what it counts: `1 thread`, `4096 threads`.
pub fn several(number: u64, one: &str) -> String {
    format!("{number} {}", noun(number, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!(several(1, "CPU"), "1 CPU");
        assert_eq!(several(0, "thread"), "0 threads");
        assert_eq!((noun(1, "event"), noun(2, "event")), ("event".into(), "events".into()));
        assert_eq!(several(2, "process"), "2 processes");
    }
}
