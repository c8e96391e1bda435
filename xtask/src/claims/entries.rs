//! The entries of `docs/claims.toml`, and what makes one well formed.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::finding::Finding;

/// One entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name, unique.
    pub id: String,
    /// The source document, `000` to `004`.
    pub document: String,
    /// The section, slide or figure.
    pub r#where: String,
    /// The sort of the entry.
    #[expect(dead_code, reason = "known kinds are checked by parsing")]
    pub kind: Kind,
    /// The words of the document.
    pub words: String,
    /// The status of the claim in this tree.
    pub status: Status,
    /// The command that shows it.
    pub command: Option<String>,
    /// The result of that command.
    pub result: Option<String>,
}

/// The sort of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A sentence that can be true or false.
    Claim,
    /// A figure or table.
    Figure,
    /// Something that can be built.
    Mechanism,
    /// Something that the authors left to do.
    FutureWork,
}

/// The status of an entry in this tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not checked yet.
    Open,
    /// The claim holds here as it is said.
    Reproduced,
    /// This tree does better than the document says.
    Exceeded,
    /// The claim does not hold here.
    Refuted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    claim: Vec<Claim>,
}

/// The documents, each with the prefix of its ids.
const DOCUMENTS: [(&str, &str); 5] =
    [("000", "shfl-"), ("001", "nemo-"), ("002", "ocaml-"), ("003", "coop-"), ("004", "cst-")];

/// Reads the entries; an unknown key, kind or status is an error.
pub fn parse(text: &str) -> Result<Vec<Claim>, toml::de::Error> {
    Ok(toml::from_str::<Document>(text)?.claim)
}

/// The defects that the parser alone does not see.
pub fn validate(file: &str, text: &str, claims: &[Claim]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let mut find = |what: String| {
            let line = line_of_id(text, &claim.id);
            findings.push(Finding::at(file, line, format!("{}: {what}", claim.id)));
        };
        if !seen.insert(claim.id.as_str()) {
            find("the id is taken".to_owned());
        }
        match DOCUMENTS.iter().find(|(document, _)| *document == claim.document) {
            None => find(format!("no document {}", claim.document)),
            Some((_, prefix)) if !is_kebab(&claim.id) || !claim.id.starts_with(prefix) => {
                find(format!("an id of document {} is {prefix}kebab-case", claim.document));
            }
            Some(_) => {}
        }
        if index > 0 && claims[index - 1].document > claim.document {
            find("entries are sorted by document".to_owned());
        }
        for (key, value) in [
            ("where", Some(&claim.r#where)),
            ("words", Some(&claim.words)),
            ("command", claim.command.as_ref()),
            ("result", claim.result.as_ref()),
        ] {
            match value {
                Some(value) if value.trim().is_empty() => find(format!("`{key}` is empty")),
                None if claim.status != Status::Open => {
                    find(format!("`{key}` is required unless the status is open"));
                }
                _ => {}
            }
        }
    }
    if claims.is_empty() {
        findings.push(Finding::of(file, "there are no entries"));
    }
    findings
}

/// The line on which the entry of that id names itself; 0 if it is written unusually.
pub fn line_of_id(text: &str, id: &str) -> usize {
    let wanted = format!("id = \"{id}\"");
    text.lines().position(|line| line.trim() == wanted).map_or(0, |at| at + 1)
}

fn is_kebab(id: &str) -> bool {
    id.split('-').all(|part| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[[claim]]
id = "shfl-size"
document = "000"
where = "slide"
kind = "figure"
words = "12 bytes"
status = "exceeded"
command = "cargo test -p a"
result = "8 bytes"

[[claim]]
id = "cst-later"
document = "004"
where = "slide"
kind = "future-work"
words = "later"
status = "open"
"#;

    fn findings(text: &str) -> Vec<String> {
        let claims = parse(text).unwrap();
        validate("f", text, &claims).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_file_has_no_findings() {
        assert_eq!(findings(GOOD), Vec::<String>::new());
    }

    #[test]
    fn unknown_words_do_not_parse() {
        for (good, bad) in
            [("\"open\"", "\"done\""), ("\"figure\"", "\"graph\""), ("words", "wordz")]
        {
            assert!(parse(&GOOD.replace(good, bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_defect_is_found_at_its_line() {
        for (good, bad, line, expected) in [
            ("\"cst-later\"\ndocument = \"004\"", "\"shfl-size\"\ndocument = \"000\"", 3, "taken"),
            ("\"shfl-size\"", "\"shfl_size\"", 3, "kebab"),
            ("\"shfl-size\"", "\"nemo-size\"", 3, "shfl-"),
            ("\"004\"", "\"005\"", 13, "no document"),
            ("\"12 bytes\"", "\" \"", 3, "`words` is empty"),
            ("command = \"cargo test -p a\"\n", "", 3, "`command` is required"),
            ("result = \"8 bytes\"\n", "", 3, "`result` is required"),
            ("\"open\"", "\"refuted\"", 13, "is required"),
        ] {
            let found = findings(&GOOD.replace(good, bad));
            assert!(!found.is_empty(), "{bad}");
            let start = format!("f:{line}");
            assert!(
                found.iter().all(|f| f.starts_with(&start) || bad.contains("command")),
                "{found:?}"
            );
            assert!(found.iter().any(|f| f.contains(expected)), "{found:?}");
        }
    }

    #[test]
    fn entries_out_of_order_and_an_empty_file_are_found() {
        let (first, second) = GOOD.split_at(GOOD.rfind("[[claim]]").unwrap());
        assert!(findings(&format!("{second}{first}")).iter().any(|f| f.contains("sorted")));
        assert!(!findings("").is_empty());
    }
}
