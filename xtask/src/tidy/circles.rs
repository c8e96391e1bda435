//! Circles of modules: files that name each other, directly or through others, and so can only be
//! read together.
//!
//! A circle of up to [`SMALL`] files is one idea in a few files. Larger circles are listed in
//! `xtask/circles.toml`, by folder, with their sizes. A circle that is not listed, or that has
//! grown, is a finding; so is one that has shrunk, until `cargo xtask tidy --fewer` updates the
//! file. `cargo xtask tidy --edges FOLDER` lists the edges of a folder's circles, each with the
//! names that make it: the candidates to cut.
//!
//! Two circles remain in `crates/`. In `runtime`, the event loop, its agenda, its inbox and the
//! trait of its callbacks name each other. In `sim`, each step of a thread reads and
//! changes the state of the whole simulation (`World`), which consists of types that the steps'
//! files define.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::Crate;
use super::ratchet;
use crate::finding::Finding;
use crate::{Failure, tree};

/// The file with the sizes.
const LIMITS: &str = "xtask/circles.toml";
/// The comment above the sizes.
const ABOUT: &str = "\
# Sizes of circles of modules, by folder; what that is: xtask/src/tidy/circles.rs.
# The sizes may only fall.
";
/// Circles of up to this many files are allowed.
const SMALL: usize = 3;

/// The allowed sizes of circles by folder, the largest first.
type Limits = BTreeMap<String, Vec<usize>>;

/// The circles of the tree, by folder.
pub struct Circles {
    found: BTreeMap<String, Vec<Vec<String>>>,
}

impl Circles {
    /// Finds the circles among the Rust files below each `src/`.
    ///
    /// # Errors
    ///
    /// If a file can't be read.
    pub fn of(root: &Path, files: &[String]) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        for (folder, one) in crates(root, files)? {
            let circles = circles(&one.edges());
            if !circles.is_empty() {
                found.insert(folder, circles);
            }
        }
        Ok(Self { found })
    }

    /// Finds circles that are larger than allowed, or smaller than listed.
    ///
    /// # Errors
    ///
    /// If the file can't be read.
    pub fn check(&self, root: &Path) -> Result<Vec<Finding>, Failure> {
        let limits: Limits = ratchet::read(root, LIMITS)?;
        let mut findings = Vec::new();
        for (folder, circles) in &self.found {
            let allowed = limits.get(folder).map(Vec::as_slice).unwrap_or_default();
            for (place, circle) in circles.iter().enumerate() {
                let allowed = allowed.get(place).copied().unwrap_or(SMALL);
                if circle.len() > allowed {
                    let what = format!(
                        "a circle of {} modules, {allowed} allowed: {}",
                        circle.len(),
                        circle.join(", ")
                    );
                    findings.push(Finding::of(folder, what));
                }
            }
        }
        if findings.is_empty() && self.lowered(&limits) != limits {
            let what = "a circle has become smaller: `cargo xtask tidy --fewer` writes that down";
            findings.push(Finding::of(LIMITS, what));
        }
        Ok(findings)
    }

    /// Lowers the sizes in the file to the current ones.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written.
    pub fn lower(&self, root: &Path) -> Result<(), Failure> {
        let lowered = self.lowered(&ratchet::read(root, LIMITS)?);
        ratchet::write(root, LIMITS, ABOUT, &text_of(&lowered))
    }

    fn lowered(&self, limits: &Limits) -> Limits {
        let sizes = |folder: &String| {
            let circles = self.found.get(folder).map(Vec::as_slice).unwrap_or_default();
            circles.iter().map(Vec::len)
        };
        let lower = |(folder, allowed): (&String, &Vec<usize>)| {
            let least = sizes(folder).zip(allowed).map(|(size, allowed)| size.min(*allowed));
            (folder.clone(), least.collect::<Vec<_>>())
        };
        limits.iter().map(lower).filter(|(_, sizes)| !sizes.is_empty()).collect()
    }
}

/// The edges between the files of the circles of `folder`, one on a line, with the paths that make
/// each.
///
/// # Errors
///
/// If a file can't be read, or the tree has no such folder.
pub fn edges(root: &Path, files: &[String], folder: &str) -> Result<String, Failure> {
    let crates = crates(root, files)?;
    let one = crates.get(folder).ok_or_else(|| format!("no folder {folder} has a `src/`"))?;
    let source = format!("{folder}/src/");
    let short = |file: &str| file.trim_start_matches(&source).to_owned();
    let mut lines = String::new();
    for circle in circles(&one.edges()) {
        lines += &format!("a circle of {} files\n", circle.len());
        let is_in = |file: &str| circle.iter().any(|other| other == file);
        for (from, named) in one.paths().filter(|(from, _)| is_in(from)) {
            let mut targets: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (to, path) in named.into_iter().filter(|(to, _)| is_in(to)) {
                targets.entry(to).or_default().push(path);
            }
            for (to, paths) in targets {
                lines += &format!("  {} -> {}: {}\n", short(from), short(to), paths.join(", "));
            }
        }
    }
    Ok(lines)
}

/// The crates of the tree, by their folders.
fn crates(root: &Path, files: &[String]) -> Result<BTreeMap<String, Crate>, Failure> {
    let mut texts: BTreeMap<String, BTreeMap<&str, String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let Some((folder, _)) = file.split_once("/src/") else { continue };
        let text = tree::text(root, file)?.unwrap_or_default();
        texts.entry(folder.to_owned()).or_default().insert(file, text);
    }
    let read = |(folder, texts): (String, BTreeMap<&str, String>)| {
        let texts = texts.iter().map(|(file, text)| (*file, text.as_str()));
        let one = Crate::of(&format!("{folder}/src/"), texts);
        (folder, one)
    };
    Ok(texts.into_iter().map(read).collect())
}

fn text_of(limits: &Limits) -> String {
    limits.iter().map(|(folder, sizes)| format!("\"{folder}\" = {sizes:?}\n")).collect()
}

/// The circles of more than [`SMALL`] files, the largest first: sets of files that reach each
/// other.
fn circles(edges: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reach(edges, file))).collect();
    let mut placed = BTreeSet::new();
    let mut all = Vec::new();
    for (file, targets) in &reached {
        if !targets.contains(file) || !placed.insert(*file) {
            continue;
        }
        let together = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
        let circle: Vec<_> = targets.iter().filter(together).copied().collect();
        placed.extend(&circle);
        if circle.len() > SMALL {
            all.push(circle.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }
    all.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    all
}

/// All files that a file names, directly or through others.
fn reach<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = edges.get(file).into_iter().flatten().copied().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(edges.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sizes: &[usize]) -> Circles {
        let circle = |size: &usize| (0..*size).map(|n| format!("c/src/{n}.rs")).collect();
        Circles { found: BTreeMap::from([("c".to_owned(), sizes.iter().map(circle).collect())]) }
    }

    #[test]
    fn files_that_reach_each_other_are_a_circle() {
        let edges = [
            ("a", vec!["b"]),
            ("b", vec!["c"]),
            ("c", vec!["d"]),
            ("d", vec!["a", "out"]),
            ("out", vec![]),
            ("x", vec!["y"]),
            ("y", vec!["x", "a"]),
        ];
        let edges = edges.map(|(from, to)| (from, to.into_iter().collect()));
        assert_eq!(circles(&BTreeMap::from(edges)), [["a", "b", "c", "d"]]);
    }

    #[test]
    fn the_arrows_of_a_circle_are_listed_with_the_names_that_make_them() {
        let root = std::env::temp_dir().join(format!("xtask-edges-{}", std::process::id()));
        std::fs::create_dir_all(root.join("c/src")).unwrap();
        let texts = [("a", "b::B"), ("b", "c::C"), ("c", "d::D"), ("d", "a::A"), ("e", "a::A")];
        let mut files = Vec::new();
        for (name, named) in texts {
            let file = format!("c/src/{name}.rs");
            std::fs::write(root.join(&file), format!("use crate::{named};\n")).unwrap();
            files.push(file);
        }
        let listed = edges(&root, &files, "c").unwrap();
        assert!(listed.starts_with("a circle of 4 files\n  a.rs -> b.rs: b::B\n"), "{listed}");
        assert!(!listed.contains("e.rs"), "{listed}");
        assert!(edges(&root, &files, "d").is_err());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sizes_fall_and_do_not_rise() {
        let root = std::env::temp_dir().join(format!("xtask-circles-{}", std::process::id()));
        std::fs::create_dir_all(root.join("xtask")).unwrap();
        let write = |text: &str| std::fs::write(root.join(LIMITS), text).unwrap();
        write("\"c\" = [7, 4]\n\"gone\" = [5]\n");
        assert_eq!(found(&[8, 4]).check(&root).unwrap().len(), 1, "grown");
        assert_eq!(found(&[7, 4, 4]).check(&root).unwrap().len(), 1, "new");
        assert_eq!(found(&[6]).check(&root).unwrap().len(), 1, "to be written down");
        found(&[6]).lower(&root).unwrap();
        assert_eq!(
            ratchet::read::<Limits>(&root, LIMITS).unwrap(),
            Limits::from([("c".to_owned(), vec![6])])
        );
        assert_eq!(found(&[6]).check(&root).unwrap(), []);
        std::fs::remove_dir_all(root).unwrap();
    }
}
