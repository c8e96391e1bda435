//! Numbers with nouns, and wrapped text.

/// The noun in the form for that number: `thread`, `threads`; `process`, `processes`; `mutex`,
/// `mutexes`.
pub fn noun(number: u64, one: &str) -> String {
    match number {
        1 => one.to_owned(),
        _ if one.ends_with(['s', 'x']) => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

/// The number in full, with the noun: `1 thread`, `4096 threads`.
pub fn several(number: u64, one: &str) -> String {
    format!("{number} {}", noun(number, one))
}

/// Wraps the text into lines of at most `columns` characters, if its words allow that.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > columns {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_longer_than_asked_for() {
        assert_eq!(wrapped("a bc def ghij", 6), "a bc\ndef\nghij");
        assert_eq!(wrapped("a longer-than-that b", 6), "a\nlonger-than-that\nb");
        assert_eq!(wrapped("", 6), "");
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!(several(1, "CPU"), "1 CPU");
        assert_eq!(several(0, "thread"), "0 threads");
        assert_eq!(noun(2, "mutex"), "mutexes");
        assert_eq!((noun(1, "event"), noun(2, "event")), ("event".into(), "events".into()));
        assert_eq!(several(2, "process"), "2 processes");
    }
}
