//! Masks comments and literals in Rust text.
//!
//! The checks search for words of code: an ordering, an `unsafe impl`, a `mod`. [`mask`] blanks
//! what only looks like code, byte for byte, so that places in the masked text are places in the
//! file. It knows line and nested block comments, strings, raw strings, byte and character
//! literals, and distinguishes characters from lifetimes; macros and conditional compilation are
//! taken literally.

/// `text` with comments and the insides of literals replaced by spaces; line ends stay.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let end = at + blank_length(bytes, at);
        if end == at {
            out.push(bytes[at]);
        } else {
            out.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
        }
    }
    String::from_utf8(out).expect("whole literals and comments were blanked")
}

/// The length of the comment or literal that starts at `at`; 0 if none does.
fn blank_length(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        [b'\'', ..] => character(rest),
        [b'r', ..] | [b'b', b'r', ..] | [b'c', b'r', ..] if !follows_word(bytes, at) => {
            raw_string(rest)
        }
        _ => 0,
    }
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return quoted(rest, b'\'');
    }
    // One character of one to four bytes, then the quote; a lifetime has none.
    let text = &rest[1..rest.len().min(6)];
    let first = text.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    match first {
        Some(first) if rest.get(1 + first.len_utf8()) == Some(&b'\'') => 2 + first.len_utf8(),
        _ => 0,
    }
}

/// The length of a raw string from its `r`, `br` or `cr`; 0 for a word that only starts so.
fn raw_string(rest: &[u8]) -> usize {
    let prefix = if rest[0] == b'r' { 1 } else { 2 };
    let hashes = rest[prefix..].iter().take_while(|&&b| b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    rest[open + 1..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(rest.len(), |found| open + 1 + found + close.len())
}

/// Returns whether `byte` may be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The places where `word` occurs as a whole word in `text`.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let end = at + word.len();
        !follows_word(bytes, at) && !bytes.get(end).is_some_and(|&b| is_word(b))
    })
}

/// The line of the byte `at`, counted from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count()
}

/// The place after the parenthesis, bracket or brace that closes the one at `open`.
pub fn closing(masked: &str, open: usize) -> Option<usize> {
    let opening = *masked.as_bytes().get(open)?;
    let closing = match opening {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        _ => return None,
    };
    let mut depth = 0_usize;
    for (offset, byte) in masked.bytes().enumerate().skip(open) {
        if byte == opening {
            depth += 1;
        } else if byte == closing {
            depth -= 1;
            if depth == 0 {
                return Some(offset + 1);
            }
        }
    }
    None
}

/// Returns whether the byte `at` belongs to a `use` declaration.
pub fn in_use(masked: &str, at: usize) -> bool {
    // Only a path, braces and commas come between `use` and its names.
    let start = masked[..at].rfind(';').map_or(0, |found| found + 1);
    words(&masked[start..at], "use")
        .last()
        .is_some_and(|found| !masked[start + found..at].contains(['(', ')', '=', '#', '!']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        for (text, masked) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("a\"b", c)"#, "f(      , c)"),
            ("r#\"a\"b\"# c", "         c"),
            ("br\"a\" c", "      c"),
            ("('x', '\\'', '→', 'a)", "(   ,     ,      , 'a)"),
            ("for r in br {}", "for r in br {}"),
            ("\"unclosed", "         "),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn a_word_is_whole() {
        assert_eq!(words("Acquired Acquire(Acquire", "Acquire").collect::<Vec<_>>(), [9, 17]);
    }

    #[test]
    fn a_parenthesis_finds_its_partner() {
        assert_eq!(closing("f(a(b), c) d", 1), Some(10));
        assert_eq!(closing("f(a(b)", 1), None);
        assert_eq!(closing("f(a) { {b} } c", 5), Some(12));
        assert_eq!(closing("f(a)", 0), None, "not a parenthesis");
    }

    #[test]
    fn imports_are_told_from_calls() {
        let text = "use a::{B, C};\nfn f() { g(B) }\nuse x::Y;";
        let place = |word| text.find(word).unwrap();
        assert!(in_use(text, place("C")));
        assert!(!in_use(text, place("B)")));
        assert!(in_use(text, place("Y")));
    }
}
