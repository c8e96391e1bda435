//! `claims`: checks the list of what the source documents claim, and what this tree makes of it.
//!
//! `docs/claims.toml` lists each claim, figure, mechanism and future-work item of the five source
//! documents as a `[[claim]]` table:
//!
//! | key | what it holds |
//! |---|---|
//! | `id` | unique, kebab case, prefixed by its document: `shfl-`, `cst-`, `nemo-`, … |
//! | `document` | `000` to `004` |
//! | `where` | the section, slide or figure |
//! | `kind` | `claim`, `figure`, `mechanism` or `future-work` |
//! | `words` | the claim, in one line |
//! | `status` | see [`Status`] |
//! | `by` | how the status was found out, see [`entries::By`]; required of judged entries |
//! | `command` | the command that shows it; required of judged entries |
//! | `expect` | figures in the command's JSON with bounds from the claim, see [`expect::Expect`] |
//! | `result` | what the command showed, on which machine; required of judged entries |
//! | `why` | why an entry is open, or can't be closed (required of those) |
//!
//! *Judged* is every entry that is neither open nor not applicable. A command is *alive* if
//! everything that it names still exists: see [`alive`]. `--check` runs commands and compares: see
//! [`check`].

mod alive;
mod check;
mod entries;
mod expect;
mod path;
mod record;
mod run;
mod select;

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, Outcome, report};
use crate::metadata::Metadata;
use crate::{Failure, tree};
use entries::{Claim, Status};

const FILE: &str = "docs/claims.toml";
/// The page of counts for readers, in all and by document.
const PAGE: &str = "docs/claims.md";
/// This file has the counts in all, too.
const README: &str = "README.md";

/// `cargo xtask claims [--readme] [--strict]`, or `--check` with the options of [`check::Options`].
///
/// `--readme` also checks the counts in `docs/claims.md`, the page for readers, and in `README.md`;
/// `--strict` fails if commands of the `antiphon` program could not be checked because it is not
/// built.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let (mut readme, mut strict, mut check) = (false, false, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("readme") => readme = true,
            Long("strict") => strict = true,
            Long("check") => check = Some(check::Options::parse(&mut arguments)?),
            other => return Err(other.unexpected().into()),
        }
    }

    let root = tree::root()?;
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let claims = entries::parse(&text).map_err(|error| format!("{FILE}: {error}"))?;
    let mut findings = entries::validate(FILE, &text, &claims);
    if let Some(options) = check {
        return match report(findings) {
            Outcome::Clean => check::run(&root, &claims, &options),
            found => Ok(found),
        };
    }
    findings.extend(dead_commands(&root, &text, &claims, strict)?);
    if readme {
        for page in [PAGE, README] {
            let text = std::fs::read_to_string(root.join(page)).unwrap_or_default();
            findings.extend(stale_count(page, &text, &count_line(&claims)));
        }
        let text = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        findings.extend(stale_rows(&text, &claims));
    }
    println!("{}", count_line(&claims));
    Ok(report(findings))
}

/// A finding for each command that names something that no longer exists.
fn dead_commands(
    root: &Path,
    text: &str,
    claims: &[Claim],
    strict: bool,
) -> Result<Vec<Finding>, Failure> {
    let world = alive::World::of(&Metadata::read(root)?)?;
    let mut findings = Vec::new();
    let mut unchecked = 0_usize;
    for claim in claims {
        let Some(command) = &claim.command else { continue };
        match world.look(command) {
            alive::Verdict::Alive => {}
            alive::Verdict::Unknown => unchecked += 1,
            alive::Verdict::Dead(why) => {
                let line = entries::line_of_id(text, &claim.id);
                findings.push(Finding::at(FILE, line, format!("{}: {why}: {command}", claim.id)));
            }
        }
    }
    if unchecked > 0 {
        println!("skipped: the verbs of {unchecked} commands (build antiphon-cli to check them)");
        if strict {
            findings.push(Finding::of(FILE, "commands unchecked: antiphon-cli is not built"));
        }
    }
    Ok(findings)
}

/// The counts of all claims, as a line of the page.
fn count_line(claims: &[Claim]) -> String {
    let count = |status| claims.iter().filter(|claim| claim.status == status).count();
    let counts = Status::ALL.map(|status| format!("{} {}", count(status), status.name()));
    format!("Claims: {} listed, {}.", claims.len(), counts.join(", "))
}

/// A finding if the file does not contain the current counts.
fn stale_count(file: &str, page: &str, line: &str) -> Option<Finding> {
    // The page wraps the line.
    if page.split_whitespace().collect::<Vec<_>>().join(" ").contains(line) {
        return None;
    }
    let stale = page.lines().position(|line| line.contains("Claims: "));
    Some(Finding::at(file, stale.map_or(0, |at| at + 1), format!("the count is now: {line}")))
}

/// A finding for each document whose row of the page's table does not end with the current counts.
fn stale_rows(page: &str, claims: &[Claim]) -> Vec<Finding> {
    let documents: BTreeSet<_> = claims.iter().map(|claim| claim.document.as_str()).collect();
    let stale = |document: &str| {
        let of = |status| {
            claims.iter().filter(|it| it.document == document && it.status == status).count()
        };
        let counts = Status::ALL.map(of);
        let columns = counts.map(|count| format!(" {count} |")).concat();
        let counts = format!("| {} |{columns}", counts.iter().sum::<usize>());
        let begin = format!("| {document} |");
        let row = page.lines().enumerate().find(|(_, line)| line.starts_with(&begin));
        let is_stale = row.is_none_or(|(_, line)| !line.ends_with(&counts));
        let at = row.map_or(0, |(at, _)| at + 1);
        is_stale.then(|| Finding::at(PAGE, at, format!("document {document} is now: {counts}")))
    };
    documents.into_iter().filter_map(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_per_status_and_a_stale_page_is_found() {
        let claims = entries::parse(
            "[[claim]]\nid = \"cst-a\"\ndocument = \"004\"\nwhere = \"x\"\nkind = \"claim\"\n\
             words = \"w\"\nstatus = \"refuted\"\nby = \"tested\"\ncommand = \"c\"\n\
             result = \"r\"\n",
        )
        .unwrap();
        let line = count_line(&claims);
        let expected = "Claims: 1 listed, 0 reproduced, 0 exceeded, 0 shape only, 0 differs, \
                        1 refuted, 0 open, 0 not applicable.";
        assert_eq!(line, expected);
        assert_eq!(stale_count("f", &format!("# Title\n{line}\n"), &line), None);
        let broken = line.replacen(" refuted, ", " refuted,\n", 1);
        assert_eq!(stale_count("f", &broken, &line), None);
        let found = stale_count("f", "# Title\nClaims: 2 listed\n", &line).unwrap();
        assert_eq!(found.line, 2);
        assert!(found.what.contains(&line));
        assert!(stale_count("f", "", &line).is_some());

        let right = "| 004 | a title | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |";
        assert!(stale_rows(&format!("# Title\n{right}\n"), &claims).is_empty());
        let found =
            stale_rows("# Title\n| 004 | a title | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |\n", &claims);
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert_eq!(stale_rows("", &claims).len(), 1);
    }
}
