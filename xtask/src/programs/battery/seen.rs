//! The observations of a run, and the differences of two runs.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Failure;

/// The observations of a run: bytes, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<String, Vec<u8>>);

/// The name for the reason why a run shows nothing: it did not end, or did not begin to answer.
const TROUBLE: &str = "trouble";
/// The most bytes of a difference that are shown.
const SHOWN: usize = 60;

impl Seen {
    /// Adds one observation.
    pub fn add(&mut self, what: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(what.into(), bytes.into());
    }

    /// Adds the reason why the run shows nothing.
    pub fn add_trouble(&mut self, why: &str) {
        self.add(TROUBLE, why);
    }

    /// Why the run shows nothing, if it does not.
    pub fn trouble(&self) -> Option<String> {
        self.0.get(TROUBLE).map(|why| String::from_utf8_lossy(why).into_owned())
    }

    /// Adds the files below a directory.
    pub fn add_files(&mut self, directory: &Path) -> Result<(), Failure> {
        self.add_files_below(directory, directory)
    }

    fn add_files_below(&mut self, directory: &Path, root: &Path) -> Result<(), Failure> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let about = path.symlink_metadata()?;
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if about.is_dir() {
                self.add(format!("directory {name}"), "");
                self.add_files_below(&path, root)?;
            } else if about.is_symlink() {
                let to = std::fs::read_link(&path)?;
                self.add(format!("link {name}"), to.as_os_str().as_encoded_bytes());
            } else if about.is_file() {
                self.add(format!("file {name}"), std::fs::read(&path)?);
            } else {
                self.add(format!("special file {name}"), "");
            }
        }
        Ok(())
    }

    /// The first difference from `other`, a run with `antiphon`.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if let Some(why) = other.trouble() {
            return Some(why);
        }
        // The exit code says the most, so it comes first.
        let mut names: Vec<_> = self.0.keys().chain(other.0.keys()).collect();
        names.sort_by_key(|name| (!name.starts_with("exit"), *name));
        names.into_iter().find_map(|name| match (self.0.get(name), other.0.get(name)) {
            (Some(one), Some(two)) => differ(name, one, two),
            (Some(_), None) => Some(format!("{name} is missing")),
            (None, _) => Some(format!("{name} exists only with antiphon")),
        })
    }
}

/// The difference between two values of one observation, if there is one.
fn differ(name: &str, one: &[u8], two: &[u8]) -> Option<String> {
    if one == two {
        return None;
    }
    let at = one.iter().zip(two).take_while(|(one, two)| one == two).count();
    // Shown from the line with the difference.
    let begin = one[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let show = |bytes: &[u8]| {
        let rest = &bytes[begin..];
        let more = if rest.len() > SHOWN { "…" } else { "" };
        let text = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN)]).into_owned();
        format!("{text:?}{more}")
    };
    Some(format!("{name} differs at byte {at}: {} without, {} with", show(one), show(two)))
}

/// The lines of stderr that CMD wrote, among those of CMD and `antiphon`. `report` is the report;
/// lines of `antiphon` before CMD begins are removed, too.
///
/// # Errors
///
/// If the report is missing.
pub fn without_report(stderr: &[u8], report: &[u8]) -> Result<Vec<u8>, String> {
    let (stderr, report) = (String::from_utf8_lossy(stderr), String::from_utf8_lossy(report));
    let Some(own) = stderr.strip_suffix(&*report).filter(|_| !report.is_empty()) else {
        let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
        return Err(format!("no report at the end of stderr, whose last line is {last:?}"));
    };
    let mut own = own;
    while own.starts_with("antiphon: ") {
        own = own.split_once('\n').map_or("", |(_, rest)| rest);
    }
    Ok(own.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(things: &[(&str, &str)]) -> Seen {
        let mut seen = Seen::default();
        for (name, bytes) in things {
            seen.add(*name, *bytes);
        }
        seen
    }

    #[test]
    fn each_difference_is_found_and_shown() {
        let plain = seen(&[("exit", "code 0"), ("stdout", "one\ntwo\n"), ("file a", "x")]);
        assert_eq!(plain.difference(&plain.clone()), None);
        let other = |name: &str, bytes: &str| {
            let mut other = plain.clone();
            other.add(name, bytes);
            plain.difference(&other).unwrap_or_default()
        };
        let exit = other("exit", "code 101");
        assert_eq!(exit, "exit differs at byte 5: \"code 0\" without, \"code 101\" with");
        let line = other("stdout", "one\ntoo\n");
        assert_eq!(line, "stdout differs at byte 5: \"two\\n\" without, \"too\\n\" with");
        // One value is a prefix of the other.
        assert!(other("stdout", "one\n").contains("at byte 4"));
        assert!(other("stdout", "one\ntwo\nthree\n").contains("at byte 8"));
        assert!(other("file a", "").contains("file a differs"));
        assert_eq!(other("file b", ""), "file b exists only with antiphon");
        assert_eq!(other("trouble", "still runs"), "still runs");
        let fewer = seen(&[("exit", "code 0"), ("stdout", "one\ntwo\n")]);
        assert_eq!(plain.difference(&fewer), Some("file a is missing".to_owned()));
        // The exit code comes first.
        let both = seen(&[("exit", "code 1"), ("stdout", ""), ("file a", "")]);
        assert!(plain.difference(&both).is_some_and(|why| why.starts_with("exit")));
    }

    #[test]
    fn long_differences_are_cut() {
        let plain = seen(&[("stdout", &"a".repeat(500))]);
        let other = seen(&[("stdout", &"b".repeat(500))]);
        let shown = plain.difference(&other).unwrap_or_default();
        assert!(shown.contains('…') && shown.len() < 250, "{shown}");
    }

    #[test]
    fn the_report_is_taken_off_stderr_and_nothing_else() {
        let report = b"\nantiphon: x\nnothing\n";
        let off = |stderr: &[u8]| without_report(stderr, report);
        let of = |own: &str| [own.as_bytes(), report].concat();
        assert_eq!(off(&of("")), Ok(Vec::new()));
        assert_eq!(off(&of("own\n")), Ok(b"own\n".to_vec()));
        assert_eq!(off(&of("no end of line")), Ok(b"no end of line".to_vec()));
        assert_eq!(
            off(&of("antiphon: static\nown\nantiphon: own\n")).as_deref(),
            Ok(&b"own\nantiphon: own\n"[..])
        );
        assert!(off(b"thread 'main' panicked\n").is_err_and(|why| why.contains("panicked")));
        assert!(without_report(b"own", b"").is_err());
    }

    #[test]
    fn files_are_compared_whatever_their_kind() -> Result<(), Failure> {
        let name = format!("antiphon-battery-seen-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(directory.join("below"))?;
        std::fs::write(directory.join("below/a"), "x")?;
        std::os::unix::fs::symlink("a", directory.join("link"))?;
        let look = || {
            let mut seen = Seen::default();
            seen.add_files(&directory).map(|()| seen)
        };
        let before = look()?;
        assert_eq!(before.difference(&look()?), None);
        std::fs::write(directory.join("below/a"), "y")?;
        assert!(before.difference(&look()?).is_some_and(|why| why.contains("file below/a")));
        std::fs::remove_file(directory.join("below/a"))?;
        assert_eq!(before.difference(&look()?), Some("file below/a is missing".to_owned()));
        std::fs::remove_dir_all(&directory)?;
        Ok(())
    }
}
