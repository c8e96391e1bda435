//! Checks whether the things that a command names still exist.
//!
//! | form | what must exist |
//! |---|---|
//! | `cargo test -p PACKAGE [--lib \| --test TARGET] [NAME]` | each of them; NAME as a function |
//! | `cargo run … [-p PACKAGE] … -- VERB …` | the verb of `antiphon` |
//! | `antiphon VERB …` | the verb |
//! | `cargo xtask VERB …` | the verb |
//!
//! The verbs of `antiphon` are those that its own `--help` lists; while it is not built they are
//! unknown. Nothing but that `--help` is run: dead names are found here, wrong results by running
//! the command.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata::{Metadata, Package, Target};
use crate::{Failure, source};

/// The things that commands may name.
pub struct World {
    packages: Vec<Package>,
    /// The verbs of `antiphon`, if it is built.
    verbs: Option<BTreeSet<String>>,
}

/// The result of checking a command.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Everything that it names exists.
    Alive,
    /// It names a verb of a program that is not built.
    Unknown,
    /// Something that it names does not exist, or its form is unknown.
    Dead(String),
}

impl World {
    /// The packages of the workspace, and the newest `antiphon` among its builds.
    pub fn of(metadata: &Metadata) -> Result<Self, Failure> {
        let verbs = match newest_build(&metadata.target_directory) {
            Some(program) => Some(verbs_of(&program)?),
            None => None,
        };
        Ok(Self { packages: metadata.packages.clone(), verbs })
    }

    /// Checks everything that `command` names.
    pub fn look(&self, command: &str) -> Verdict {
        let words: Vec<_> = command.split_whitespace().collect();
        match words[..] {
            ["cargo", "test", ref rest @ ..] => self.look_test(rest),
            ["cargo", "run", ref rest @ ..] => self.look_run(rest),
            ["cargo", "xtask", verb, ..] if crate::verbs().contains(&verb) => Verdict::Alive,
            ["cargo", "xtask", ..] => dead("no such verb of xtask"),
            ["antiphon", verb, ..] => self.look_verb(verb),
            _ => dead("not a form of command that is checked"),
        }
    }

    fn look_test(&self, words: &[&str]) -> Verdict {
        let (mut package, mut target, mut library, mut name) = (None, None, false, None);
        let mut words = words.iter().take_while(|word| **word != "--");
        while let Some(&word) = words.next() {
            match word {
                "-p" | "--package" => package = words.next(),
                "--test" => target = words.next(),
                "--lib" => library = true,
                "--release" => {}
                flag if flag.starts_with('-') => return dead(format!("unknown flag {flag}")),
                filter => name = Some(filter),
            }
        }
        let Some(package) = package else { return dead("no `-p PACKAGE`") };
        let Some(package) = self.packages.iter().find(|p| p.name == **package) else {
            return dead(format!("no package {package}"));
        };
        let is_searched = |found: &&Target| match target {
            Some(target) => is_kind(found, "test") && found.name == **target,
            None if library => is_kind(found, "lib"),
            None => true,
        };
        let searched: Vec<_> = package.targets.iter().filter(is_searched).collect();
        if searched.is_empty() {
            return dead(format!("no such test target in {}", package.name));
        }
        match name {
            Some(name) if !searched.iter().any(|target| defines(target, name)) => {
                dead(format!("no test {name}"))
            }
            _ => Verdict::Alive,
        }
    }

    fn look_run(&self, words: &[&str]) -> Verdict {
        let Some(split) = words.iter().position(|word| *word == "--") else {
            return dead("no `-- VERB`");
        };
        let package = words[..split].iter().skip_while(|w| !["-p", "--package"].contains(w)).nth(1);
        match package {
            Some(package) if self.packages.iter().all(|p| p.name != **package) => {
                dead(format!("no package {package}"))
            }
            Some(package) if *package != "antiphon-cli" => Verdict::Alive,
            _ => words.get(split + 1).map_or_else(|| dead("no verb"), |verb| self.look_verb(verb)),
        }
    }

    fn look_verb(&self, verb: &str) -> Verdict {
        match &self.verbs {
            None => Verdict::Unknown,
            Some(verbs) if verbs.contains(verb) => Verdict::Alive,
            Some(_) => dead(format!("no verb {verb}")),
        }
    }
}

fn dead(why: impl Into<String>) -> Verdict {
    Verdict::Dead(why.into())
}

fn is_kind(target: &Target, kind: &str) -> bool {
    target.kind.iter().any(|k| k == kind)
}

/// Whether the target's sources define a function whose name contains the last part of `name`.
fn defines(target: &Target, name: &str) -> bool {
    let function = name.rsplit("::").next().unwrap_or(name);
    let mut files = vec![target.src_path.clone()];
    // The tests of a library, or of a test target with its own directory, are anywhere below its
    // root; those of other targets are beside it, in a directory of the target's name.
    let is_one_file = is_kind(target, "test") && !target.src_path.ends_with("main.rs");
    let below = match is_one_file {
        true => target.src_path.with_extension(""),
        false => target.src_path.parent().map(Path::to_owned).unwrap_or_default(),
    };
    collect(&below, &mut files);
    files.iter().any(|file| {
        std::fs::read_to_string(file).is_ok_and(|text| defines_function(&text, function))
    })
}

fn defines_function(text: &str, part: &str) -> bool {
    let masked = source::mask(text);
    source::words(&masked, "fn").any(|at| {
        let rest = masked[at + 2..].trim_start();
        let end = rest.bytes().position(|b| !source::is_word(b)).unwrap_or(rest.len());
        rest[..end].contains(part)
    })
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The `antiphon` that was built most recently.
fn newest_build(target_directory: &Path) -> Option<PathBuf> {
    ["debug", "release"]
        .iter()
        .map(|profile| target_directory.join(profile).join("antiphon"))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
}

fn verbs_of(program: &Path) -> Result<BTreeSet<String>, Failure> {
    let output = Command::new(program).arg("--help").output()?;
    if !output.status.success() {
        return Err(format!("{} --help failed: {}", program.display(), output.status).into());
    }
    Ok(listed_verbs(&String::from_utf8_lossy(&output.stdout)))
}

/// The first words of the indented lines of a help text: its verbs, and some other words.
fn listed_verbs(help: &str) -> BTreeSet<String> {
    help.lines()
        .filter(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
        .filter(|word| !word.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This package as the world: it contains the tests to find.
    fn world(verbs: Option<&[&str]>) -> World {
        let package = Package {
            name: "xtask".to_owned(),
            description: None,
            manifest_path: Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"),
            dependencies: Vec::new(),
            targets: vec![Target {
                name: "xtask".to_owned(),
                kind: vec!["bin".to_owned()],
                src_path: Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs"),
            }],
        };
        let verbs = verbs.map(|verbs| verbs.iter().map(|&verb| verb.to_owned()).collect());
        World { packages: vec![package], verbs }
    }

    fn is_dead(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Dead(_))
    }

    #[test]
    fn live_commands_are_alive() {
        for command in [
            "cargo test -p xtask",
            "cargo test -p xtask live_commands_are_alive",
            "cargo test -p xtask claims::alive::tests::live_commands -- --nocapture",
            "cargo run --release -p antiphon-cli -- run --report r.json -- true",
            "antiphon bench locks --json",
            "cargo xtask tidy",
        ] {
            let mut world = world(Some(&["run", "bench"]));
            world
                .packages
                .push(Package { name: "antiphon-cli".into(), ..world.packages[0].clone() });
            assert_eq!(world.look(command), Verdict::Alive, "{command}");
        }
    }

    #[test]
    fn dead_commands_are_found() {
        for command in [
            "",
            "make it",
            "cargo test",
            "cargo test -p nothing",
            "cargo test -p xtask --test nothing",
            "cargo test -p xtask --lib",
            "cargo test -p xtask no_such_test",
            "cargo test -p xtask --odd",
            "cargo run",
            "cargo run -p nothing -- run",
            "cargo run -- fly",
            "antiphon fly",
            "antiphon",
            "cargo xtask fly",
        ] {
            let verdict = world(Some(&["run"])).look(command);
            assert!(is_dead(&verdict), "{command}: {verdict:?}");
        }
    }

    #[test]
    fn verbs_are_unknown_while_nothing_is_built() {
        assert_eq!(world(None).look("antiphon run -- true"), Verdict::Unknown);
    }

    #[test]
    fn verbs_are_read_from_help() {
        let help = "Finds waits\n\nUsage: antiphon <COMMAND>\n\nCommands:\n  run    Runs\n  \
                    bench  Measures\n\nOptions:\n  -h, --help  Shows this\n";
        assert_eq!(listed_verbs(help).into_iter().collect::<Vec<_>>(), ["bench", "run"]);
    }
}
