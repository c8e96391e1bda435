//! Selects the entries that `--check` runs.

use std::collections::BTreeSet;
use std::path::Path;

use super::entries::{self, Claim};
use crate::metadata::{Metadata, Package};
use crate::{Failure, tree};

/// The `number`th of `of` parts, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: usize,
    pub of: usize,
}

impl Part {
    /// Parses `3/10`.
    ///
    /// # Errors
    ///
    /// If it has another form, or there is no such part.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
        });
        numbers
            .filter(|part| (1..=part.of).contains(&part.number))
            .ok_or_else(|| format!("--part {text}: write a number of a number, as 3/10").into())
    }
}

/// The entries whose ids begin with one of `names`.
///
/// # Errors
///
/// If no id begins with one of the names.
pub fn named<'a>(claims: &'a [Claim], names: &[String]) -> Result<BTreeSet<&'a str>, Failure> {
    let mut found = BTreeSet::new();
    for name in names {
        let before = found.len();
        found.extend(ids(claims).filter(|id| id.starts_with(name.as_str())));
        if found.len() == before && !ids(claims).any(|id| id.starts_with(name.as_str())) {
            return Err(format!("no entry's name begins with {name}").into());
        }
    }
    Ok(found)
}

fn ids(claims: &[Claim]) -> impl Iterator<Item = &str> {
    claims.iter().map(|claim| claim.id.as_str())
}

/// The judged entries of one part. All parts together are all judged entries; entries with equal
/// commands are in one part, so each command runs in only one.
pub fn part(claims: &[Claim], part: Part) -> BTreeSet<&str> {
    let mut commands: Vec<&str> = Vec::new();
    let mut found = BTreeSet::new();
    for claim in claims.iter().filter(|claim| claim.is_judged()) {
        let Some(command) = &claim.command else { continue };
        let index = commands.iter().position(|known| known == command).unwrap_or_else(|| {
            commands.push(command);
            commands.len() - 1
        });
        if index % part.of == part.number - 1 {
            found.insert(claim.id.as_str());
        }
    }
    found
}

/// The entries that differ from the commit `base`, and those whose command is built from a file
/// that has changed after it.
///
/// # Errors
///
/// If git does not know `base`.
pub fn changed<'a>(
    root: &Path,
    metadata: &Metadata,
    claims: &'a [Claim],
    base: &str,
) -> Result<BTreeSet<&'a str>, Failure> {
    let files = tree::changed_since(root, base)?;
    let old = tree::text_at(root, base, super::FILE)?;
    // Entries that this version can't parse had another form: all of them count as changed.
    let old = entries::parse(&old).unwrap_or_default();
    let has_changed = |claim: &&Claim| {
        !old.contains(claim)
            || claim.command.as_ref().is_some_and(|command| {
                let folders = folders(root, metadata, command);
                files.iter().any(|file| folders.iter().any(|folder| file.starts_with(folder)))
            })
    };
    Ok(claims.iter().filter(has_changed).map(|claim| claim.id.as_str()).collect())
}

/// The folders of the packages that a command is built from, each with a trailing slash.
fn folders(root: &Path, metadata: &Metadata, command: &str) -> Vec<String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let (name, dev) = match words[..] {
        ["antiphon", verb, ..] => (super::run::package_of(verb), false),
        ["cargo", "xtask", ..] => ("xtask", false),
        _ => {
            let flag = words.iter().position(|word| ["-p", "--package"].contains(word));
            (flag.and_then(|at| words.get(at + 1)).copied().unwrap_or_default(), true)
        }
    };
    let mut names = Vec::new();
    closure(&metadata.packages, name, dev, &mut names);
    let folder = |package: &&Package| {
        let below = package.directory().strip_prefix(root).ok()?;
        Some(format!("{}/", below.display()))
    };
    metadata
        .packages
        .iter()
        .filter(|p| names.contains(&&*p.name))
        .filter_map(|p| folder(&p))
        .collect()
}

/// The package and the workspace packages that it depends on; with the dependencies of its own
/// tests if `dev`.
fn closure<'a>(packages: &'a [Package], name: &str, dev: bool, names: &mut Vec<&'a str>) {
    let Some(package) = packages.iter().find(|package| package.name == name) else { return };
    if names.contains(&package.name.as_str()) {
        return;
    }
    names.push(&package.name);
    let is_used = |kind: &Option<String>| dev || kind.as_deref() != Some("dev");
    for dependency in package.dependencies.iter().filter(|d| d.path.is_some() && is_used(&d.kind)) {
        closure(packages, &dependency.name, false, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    /// Entries with these commands; an empty one is open.
    fn claims(commands: &[&str]) -> Vec<Claim> {
        let entry = |(at, command): (usize, &&str)| {
            let judged = match *command {
                "" => "status = \"open\"".to_owned(),
                _ => format!(
                    "status = \"refuted\"\nby = \"tested\"\nresult = \"r\"\ncommand = \"{command}\""
                ),
            };
            format!(
                "[[claim]]\nid = \"cst-{at}\"\ndocument = \"004\"\nwhere = \"x\"\n\
                 kind = \"claim\"\nwords = \"w\"\n{judged}\n"
            )
        };
        let text: String = commands.iter().enumerate().map(entry).collect();
        entries::parse(&text).unwrap()
    }

    #[test]
    fn parts_are_written_as_a_number_of_a_number() {
        assert_eq!(Part::parse("3/10").unwrap(), Part { number: 3, of: 10 });
        for bad in ["", "3", "0/10", "11/10", "a/10", "3/", "1/0", "1/2/3"] {
            assert!(Part::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ten_parts_have_each_judged_entry_once_and_each_command_in_one() {
        let commands: Vec<_> = (0..57).map(|at| format!("c{}", at % 23)).collect();
        let mut commands: Vec<_> = commands.iter().map(String::as_str).collect();
        commands.push("");
        let claims = claims(&commands);
        let mut seen = Vec::new();
        for number in 1..=10 {
            let ids = part(&claims, Part { number, of: 10 });
            assert!((3..=9).contains(&ids.len()), "{ids:?}");
            seen.extend(ids);
        }
        seen.sort_unstable();
        let mut judged: Vec<_> = ids(&claims[..57]).collect();
        judged.sort_unstable();
        assert_eq!(seen, judged);
        // Equal commands, one part.
        let first = part(&claims, Part { number: 1, of: 10 });
        assert!(first.contains("cst-0") && first.contains("cst-23") && first.contains("cst-46"));
    }

    #[test]
    fn names_are_beginnings() {
        let claims = claims(&["a", "b"]);
        assert_eq!(named(&claims, &["cst-1".to_owned()]).unwrap().len(), 1);
        assert_eq!(named(&claims, &["cst-".to_owned(), "cst-0".to_owned()]).unwrap().len(), 2);
        assert!(named(&claims, &["nemo-".to_owned()]).is_err());
    }

    #[test]
    fn a_command_is_built_from_its_package_and_what_that_depends_on() {
        let package = |name: &str, dependencies: &[(&str, Option<&str>)]| Package {
            name: name.to_owned(),
            description: None,
            manifest_path: Path::new("/tree/crates").join(name).join("Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: kind.map(str::to_owned),
                    path: Some("p".into()),
                })
                .collect(),
            targets: Vec::new(),
        };
        let metadata = Metadata {
            packages: vec![
                package("antiphon-lab", &[("sync", None), ("loose", Some("dev"))]),
                package("sync", &[("seam", None), ("check", Some("dev"))]),
                package("seam", &[]),
                package("check", &[("sync", None)]),
                package("loose", &[]),
            ],
            target_directory: "/t".into(),
        };
        let of = |command| folders(Path::new("/tree"), &metadata, command);
        let lab = ["crates/antiphon-lab/", "crates/sync/", "crates/seam/"];
        assert_eq!(of("antiphon sim locks"), lab);
        let tests = ["crates/sync/", "crates/seam/", "crates/check/"];
        assert_eq!(of("cargo test -p sync --test sim"), tests);
        assert!(of("antiphon run -- true").is_empty());
    }
}
