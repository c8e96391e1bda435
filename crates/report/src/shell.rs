//! Quotes words for a shell.

/// The words in one line that can be pasted into a POSIX shell (Shell Command Language, 2.2): words
/// that the shell would split or expand are in single quotes.
pub fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "%+,-./:=@_".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_needs_no_quotes_has_none() {
        assert_eq!(line(["xz", "-T4", "--x=/a/b.c", "naïve"]), "xz -T4 --x=/a/b.c naïve");
        assert_eq!(line(["sh", "-c", "exit 0"]), "sh -c 'exit 0'");
    }

    #[test]
    fn a_shell_reads_the_words_that_were_written() {
        let words =
            ["", " ", "a'b", "''", "$HOME", "`id`", "~", "*", "a\nb", "#", "\\", "!", "x{1,2}"];
        let script = format!("printf '%s|' {}", line(words));
        let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let expected: String = words.iter().map(|word| format!("{word}|")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}
