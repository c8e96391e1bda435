//! `tidy`: checks style, so that reviews need not.
//!
//! | module | rule |
//! |---|---|
//! | [`lines`] | 100 columns; a file of more than 600 lines says `Long because …` at its top |
//! | [`words`] | no unfinished work, no ignored test or error, no path of one machine |
//! | [`orderings`] | in `sync`, `runtime` and `platform`, sequential consistency only in fences |
//! | [`unsafety`] | each `unsafe impl` says why it is sound |
//! | [`links`] | links between pages lead somewhere; the book has every page |
//! | [`modules`] | each file under `src` is a module of some file |
//! | [`crates`] | each crate describes itself; no workspace dependency is unused |
//! | [`rooms`] | dependencies point down |
//! | [`circles`] | circles of files that name each other only shrink; [`imports`] finds them |
//! | [`mutants`](crate::mutants) | each mutant of the table has its place in the source |
//! | [`prose`] | habits of prose that keep readers out only become fewer |
//! | [`ratchet`] | no rule: reads and writes the numbers of the last two |

mod circles;
mod crates;
mod imports;
mod lines;
mod links;
mod modules;
mod orderings;
mod prose;
mod ratchet;
mod rooms;
mod unsafety;
mod words;

use crate::finding::{Outcome, report};
use crate::metadata::Metadata;
use crate::{Failure, source, tree};

/// `cargo xtask tidy [--fewer | --edges FOLDER]`.
///
/// `--fewer` first lowers the numbers of [`prose`] and [`circles`] to the current ones. `--edges`
/// only lists the edges of the circles of one folder, for example `crates/sync`.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let (mut lower, mut listed) = (false, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("fewer") => lower = true,
            Long("edges") => listed = Some(arguments.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let root = tree::root()?;
    let files = tree::files(&root)?;
    if let Some(folder) = listed {
        print!("{}", circles::edges(&root, &files, folder.trim_end_matches('/'))?);
        return Ok(Outcome::Clean);
    }
    let metadata = Metadata::read(&root)?;

    let mut findings = Vec::new();
    let mut prose = prose::Prose::default();
    let mut links = links::Links::default();
    for file in &files {
        let Some(text) = tree::text(&root, file)? else { continue };
        let language = Language::of(file, &text);
        prose.read(file, language, &text);
        findings.extend(lines::check(file, language, &text));
        findings.extend(words::check(file, language, &text));
        if language == Language::Markdown {
            links.read(file, &text);
        }
        if language == Language::Rust {
            let masked = source::mask(&text);
            findings.extend(orderings::check(file, &masked));
            findings.extend(unsafety::check(file, &text, &masked));
        }
    }
    findings.extend(links.check(&files));
    findings.extend(modules::check(&root, &files, &metadata)?);
    findings.extend(crates::check(&root, &files, &metadata)?);
    findings.extend(rooms::check(&root, &metadata));
    findings.extend(crate::mutants::check(&root));
    let circles = circles::Circles::of(&root, &files)?;
    if lower {
        prose.lower(&root)?;
        circles.lower(&root)?;
    }
    findings.extend(prose.check(&root)?);
    findings.extend(circles.check(&root)?);
    Ok(report(findings))
}

/// The language of a file, as far as the rules distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    C,
    Shell,
    Markdown,
    Other,
}

impl Language {
    fn of(file: &str, text: &str) -> Self {
        let name = file.rsplit('/').next().unwrap_or(file);
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => Self::Rust,
            Some("c" | "h") => Self::C,
            Some("sh") => Self::Shell,
            Some("md") => Self::Markdown,
            _ if is_shell_script(text) => Self::Shell,
            _ => Self::Other,
        }
    }
}

fn is_shell_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    first.starts_with("#!") && first.ends_with("sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_by_its_ending_or_its_first_line() {
        for (file, text, language) in [
            ("a/b.rs", "", Language::Rust),
            ("a.h", "", Language::C),
            ("README.md", "", Language::Markdown),
            (".ci/run", "#!/usr/bin/env bash\n", Language::Shell),
            (".ci/run", "#!/usr/bin/python3\n", Language::Other),
            (".rs/data", "", Language::Other),
        ] {
            assert_eq!(Language::of(file, text), language, "{file}");
        }
    }
}
