//! Parser of the file of `--sites`: its entries, and the errors in it.

use std::ops::Range;
use std::path::Path;

use antiphon_sync::policy::Chosen;
use serde::Deserialize;
use toml::Spanned;

/// One `[[site]]`, valid by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of the entry in the file, from 1.
    pub line: usize,
    /// The place that the entry names.
    pub at: At,
    /// The name of a policy.
    pub policy: String,
}

/// A place in programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// A whole function, or the call that returns to the offset `returns_to` in it.
    Function { name: String, module: Option<String>, returns_to: Option<u64> },
    /// The call that returns to an offset in a file.
    Offset { module: String, returns_to: u64 },
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Function { name, module, returns_to } => {
                f.write_str(name)?;
                if let Some(into) = returns_to {
                    write!(f, "+{into:#x}")?;
                }
                module.as_ref().map_or(Ok(()), |module| write!(f, " ({module})"))
            }
            Self::Offset { module, returns_to } => write!(f, "{module}+{returns_to:#x}"),
        }
    }
}

/// An error in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    line: usize,
    what: String,
}

impl Wrong {
    /// The error in one line, for the file at `path`.
    pub fn of(self, path: &Path) -> String {
        format!("{}:{}: {}", path.display(), self.line, self.what)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    site: Vec<Spanned<Site>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Site {
    at: Option<Spanned<String>>,
    function: Option<String>,
    module: Option<String>,
    offset: Option<u64>,
    policy: Spanned<String>,
}

/// The entries of a file's text.
///
/// # Errors
///
/// The first error in the file.
pub fn parse(text: &str) -> Result<Vec<Entry>, Wrong> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let document: Document = toml::from_str(text).map_err(|error| Wrong {
        line: line(error.span().map_or(0, |Range { start, .. }| start)),
        what: error.message().replace('\n', ", "),
    })?;
    if document.site.is_empty() {
        return Err(Wrong { line: 1, what: "no [[site]] in it; see --help".to_owned() });
    }
    document.site.into_iter().map(|site| entry(site, line)).collect()
}

fn entry(site: Spanned<Site>, line: impl Fn(usize) -> usize) -> Result<Entry, Wrong> {
    let begin = line(site.span().start);
    let Site { at, function, module, offset, policy } = site.into_inner();
    if let Err(unknown) = Chosen::named(policy.get_ref()) {
        let what = format!("policy {:?}: {unknown}", policy.get_ref());
        return Err(Wrong { line: line(policy.span().start), what });
    }
    let at = match (at, function, module, offset) {
        (Some(at), None, None, None) => {
            let at_line = line(at.span().start);
            place(at.get_ref()).ok_or_else(|| Wrong {
                line: at_line,
                what: format!(
                    "at = {:?} is not a site as a report names it: \"function+0x1f (file)\" or \
                     \"file+0x1234\"",
                    at.get_ref()
                ),
            })?
        }
        (None, Some(name), module, None) => At::Function { name, module, returns_to: None },
        (None, None, Some(module), Some(returns_to)) => At::Offset { module, returns_to },
        _ => {
            let what = "a [[site]] needs at, or function (and module), or module and offset";
            return Err(Wrong { line: begin, what: what.to_owned() });
        }
    };
    Ok(Entry { line: begin, at, policy: policy.into_inner() })
}

/// Parses a place in the notation of a report.
fn place(site: &str) -> Option<At> {
    let (place, module) = match site.strip_suffix(')').and_then(|site| site.rsplit_once(" (")) {
        Some((place, module)) => (place, Some(module.to_owned())),
        None => (site, None),
    };
    let (name, offset) = place.rsplit_once("+0x")?;
    let returns_to = u64::from_str_radix(offset, 16).ok().filter(|&offset| offset > 0)?;
    let name = Some(name.to_owned()).filter(|name| !name.is_empty())?;
    Some(match module {
        Some(_) => At::Function { name, module, returns_to: Some(returns_to) },
        None => At::Offset { module: name, returns_to },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_in_three_ways() {
        let text = "
            [[site]]
            at = \"std::f<(a)>+0x1f (libx.so)\"
            policy = \"none\"
            [[site]]
            at = \"libx.so+0x1234\"
            policy = \"numa\"
            [[site]]
            function = \"foo\"
            policy = \"none\"
            [[site]]
            function = \"bar\"
            module = \"liby.so\"
            policy = \"none\"
            [[site]]
            module = \"/lib/z.so\"
            offset = 0x20
            policy = \"none\"
        ";
        let entries = parse(text).expect("entries");
        let function = |name: &str, module: Option<&str>, returns_to| {
            let module = module.map(str::to_owned);
            At::Function { name: name.to_owned(), module, returns_to }
        };
        let offset =
            |module: &str, returns_to| At::Offset { module: module.to_owned(), returns_to };
        let expected = [
            (2, function("std::f<(a)>", Some("libx.so"), Some(0x1f))),
            (5, offset("libx.so", 0x1234)),
            (8, function("foo", None, None)),
            (11, function("bar", Some("liby.so"), None)),
            (15, offset("/lib/z.so", 0x20)),
        ];
        assert_eq!(entries.len(), expected.len());
        for (entry, (line, at)) in entries.into_iter().zip(expected) {
            assert_eq!((entry.line, entry.at), (line, at));
        }
    }

    #[test]
    fn what_the_documentation_shows_is_sound() {
        let text = include_str!("../../../../docs/sites.md");
        let example = text.split("```toml\n").nth(1).and_then(|text| text.split("```").next());
        let entries = example.map(parse).expect("an example").expect("entries");
        assert_eq!(entries.len(), 4);
        let in_help = super::super::HELP.lines().filter_map(|line| line.strip_prefix("  "));
        let in_help = in_help.map(|line| line.replace("# (", "# ")).collect::<Vec<_>>().join("\n");
        assert_eq!(parse(&in_help).expect("entries").len(), 3);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str, line: usize, words: &str| {
            let wrong = parse(text).expect_err("something is wrong");
            let said = wrong.of(Path::new("sites.toml"));
            assert!(said.starts_with(&format!("sites.toml:{line}: ")), "{said}");
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        };
        wrong("", 1, "no [[site]]");
        wrong("\n\nsite = 3\n", 3, "sequence");
        wrong("[[site]]\nfunction = \"a\"\n\npolicy = \"fifo\"\n", 4, "there are numa, none");
        wrong("[[site]]\nfunction = \"a\"\n", 1, "policy");
        wrong("[[site]]\nfunction = \"a\"\npolicy = \"none\"\nlocks = 3\n", 4, "unknown field");
        wrong("\n[[site]]\npolicy = \"none\"\n", 2, "module and offset");
        wrong("[[site]]\noffset = 3\npolicy = \"none\"\n", 1, "module and offset");
        wrong("[[site]]\nat = \"a\"\nfunction = \"a\"\npolicy = \"none\"\n", 1, "needs at, or");
        wrong("[[site]]\npolicy = \"none\"\nat = \"a+3 (b)\"\n", 3, "as a report names it");
        wrong("[[site]]\nat = \"+0x3\"\npolicy = \"none\"\n", 2, "as a report names it");
        wrong("[[site]\n", 1, "");
    }
}
