//! The entries of `docs/claims.toml`, and the rules for their form.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::expect::Expect;
use crate::finding::Finding;

/// One entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The unique name of the entry.
    pub id: String,
    /// The source document, `000` to `004`.
    pub document: String,
    /// The section, slide or figure.
    pub r#where: String,
    /// The kind of the entry.
    pub kind: Kind,
    /// The words of the document.
    pub words: String,
    /// The status of the claim in this tree.
    pub status: Status,
    /// How the status was found out.
    pub by: Option<By>,
    /// The command that shows it.
    pub command: Option<String>,
    /// The figures that the command has to print.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// The result of that command.
    pub result: Option<String>,
    /// Why there is no judgement: for open entries, and for those that can't be closed.
    pub why: Option<String>,
}

impl Claim {
    /// Returns whether the claim was compared with this tree.
    pub fn is_judged(&self) -> bool {
        !matches!(self.status, Status::Open | Status::NotApplicable)
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A sentence that can be true or false.
    Claim,
    /// A figure or table.
    Figure,
    /// Something that can be built.
    Mechanism,
    /// Work that the authors left for the future.
    FutureWork,
}

/// The status of an entry in this tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not judged: not examined yet, or waiting for something that `why` names.
    Open,
    /// The claim holds here as stated.
    Reproduced,
    /// This tree does better than the document says.
    Exceeded,
    /// The order or the shape of the curve is reproduced here, but not the figure.
    ShapeOnly,
    /// Built in another way, or only a part of the claim holds: `result` says why.
    Differs,
    /// The claim does not hold here.
    Refuted,
    /// A heading, a statement of intent or a diagram: it can't be shown or refuted.
    NotApplicable,
}

impl Status {
    /// All statuses, in the order of the page's columns.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::Exceeded,
        Self::ShapeOnly,
        Self::Differs,
        Self::Refuted,
        Self::Open,
        Self::NotApplicable,
    ];

    /// The name in sentences and in the head of a column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Reproduced => "reproduced",
            Self::Exceeded => "exceeded",
            Self::ShapeOnly => "shape only",
            Self::Differs => "differs",
            Self::Refuted => "refuted",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// How a status was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Measured on a real machine.
    Measured,
    /// Code of this tree on a simulated machine.
    Simulated,
    /// A model or a calculation, not the code itself.
    Modelled,
    /// Code of this tree in a test that controls the clock.
    VirtualTime,
    /// All interleavings within a bound.
    ModelChecker,
    /// A functional test.
    Tested,
}

impl By {
    /// The name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
            Self::Modelled => "modelled",
            Self::VirtualTime => "virtual time",
            Self::ModelChecker => "model checker",
            Self::Tested => "tested",
        }
    }
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

/// Defects of form that the parser does not detect.
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
        for defect in defects(claim) {
            find(defect);
        }
    }
    if claims.is_empty() {
        findings.push(Finding::of(file, "there are no entries"));
    }
    findings
}

/// Defects of one entry that its own keys show.
fn defects(claim: &Claim) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in [
        ("where", Some(&claim.r#where)),
        ("words", Some(&claim.words)),
        ("command", claim.command.as_ref()),
        ("result", claim.result.as_ref()),
        ("why", claim.why.as_ref()),
    ] {
        match value {
            Some(value) if value.trim().is_empty() => found.push(format!("`{key}` is empty")),
            None if key == "why" && claim.status == Status::NotApplicable => {
                found.push("`why` is required of what is not applicable".to_owned());
            }
            Some(_) if key == "why" && claim.is_judged() => {
                found.push("`why` is of open and not applicable entries".to_owned());
            }
            None if key != "why" && claim.is_judged() => {
                found.push(format!("`{key}` is required unless open or not applicable"));
            }
            _ => {}
        }
    }
    match claim.by {
        None if claim.is_judged() => {
            found.push("`by` is required unless open or not applicable".to_owned());
        }
        Some(_) if !claim.is_judged() => {
            found.push("`by` is of judged entries".to_owned());
        }
        _ => {}
    }
    if !claim.expect.is_empty() {
        if !claim.is_judged() {
            found.push("`expect` is of judged entries".to_owned());
        }
        if !claim.command.as_ref().is_some_and(|command| command.starts_with("antiphon ")) {
            found.push("`expect` needs an `antiphon` command, which prints figures".to_owned());
        }
        found.extend(claim.expect.iter().filter_map(Expect::defect).map(str::to_owned));
    }
    found
}

/// The line of the entry's `id` key; 0 if it is written unusually.
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
by = "tested"
command = "cargo test -p a"
result = "8 bytes"

[[claim]]
id = "cst-later"
document = "004"
where = "slide"
kind = "future-work"
words = "later"
status = "open"

[[claim]]
id = "cst-ratio"
document = "004"
where = "slide"
kind = "claim"
words = "5 times"
status = "shape-only"
by = "simulated"
command = "antiphon sim locks"
expect = [
    { value = "rows[subject=a].rate", over = "rows[subject=b].rate", at_least = 2, claimed = "5" },
]
result = "2.5 times"

[[claim]]
id = "cst-heading"
document = "004"
where = "slide"
kind = "claim"
words = "a heading"
status = "not-applicable"
why = "a heading"
"#;

    /// The lines of the ids of the third and of the last entry.
    const RATIO: usize = 22;
    const LAST: usize = 36;

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
            ("heading\"\ndocument = \"004", "heading\"\ndocument = \"005", LAST, "no document"),
            ("\"12 bytes\"", "\" \"", 3, "`words` is empty"),
            ("command = \"cargo test -p a\"\n", "", 3, "`command` is required"),
            ("result = \"8 bytes\"\n", "", 3, "`result` is required"),
            ("\"open\"", "\"refuted\"", 14, "`by` is required"),
            ("by = \"tested\"\n", "", 3, "`by` is required"),
            ("why = \"a heading\"\n", "", LAST, "`why` is required"),
            ("why = \"a", "by = \"tested\"\nwhy = \"a", LAST, "`by` is of judged"),
            ("result = \"8 b", "why = \"x\"\nresult = \"8 b", 3, "`why` is of open"),
            ("at_least = 2, ", "", RATIO, "neither"),
            ("\"antiphon sim locks\"", "\"cargo test -p a\"", RATIO, "`expect` needs"),
        ] {
            let found = findings(&GOOD.replace(good, bad));
            assert!(!found.is_empty(), "{bad}");
            let start = format!("f:{line}:");
            assert!(found.iter().all(|f| f.starts_with(&start)), "{found:?}");
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
