//! Checks that crates describe themselves, and that the workspace lists no unused dependency.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Table;

use crate::finding::Finding;
use crate::metadata::{Metadata, Package};
use crate::{Failure, tree};

/// The least number of lines in a crate's heading.
const ESSAY: usize = 3;

/// Finds crates without a description or a heading, and unused entries of
/// `[workspace.dependencies]`.
pub fn check(root: &Path, files: &[String], metadata: &Metadata) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for package in &metadata.packages {
        findings.extend(check_package(root, files, package)?);
        let manifest: Table = std::fs::read_to_string(&package.manifest_path)?.parse()?;
        inherited(&manifest, &mut used);
    }
    let workspace: Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    findings.extend(unused(&workspace, &used));
    Ok(findings)
}

fn check_package(
    root: &Path,
    files: &[String],
    package: &Package,
) -> Result<Option<Finding>, Failure> {
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let manifest = relative(&package.manifest_path);
    if package.description.as_ref().is_none_or(|text| text.trim().is_empty()) {
        return Ok(Some(Finding::of(&manifest, "the crate has no description")));
    }
    if files.contains(&relative(&package.directory().join("README.md"))) {
        return Ok(None);
    }
    let main = |kind: &str| package.targets.iter().find(|t| t.kind.iter().any(|k| k == kind));
    let target = ["lib", "cdylib", "proc-macro", "bin"].into_iter().find_map(main);
    let Some(target) = target else { return Ok(None) };
    let file = relative(&target.src_path);
    let text = tree::text(root, &file)?.unwrap_or_default();
    Ok((!has_essay(&text)).then(|| Finding::of(&file, "no README.md, and no essay at its top")))
}

fn has_essay(text: &str) -> bool {
    text.lines().filter(|line| line.starts_with("//!")).count() >= ESSAY
}

/// The names that a manifest inherits from the workspace, in any of its dependency tables.
fn inherited(manifest: &Table, used: &mut BTreeSet<String>) {
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            let inherits = |entry: &toml::Value| {
                entry.get("workspace").and_then(toml::Value::as_bool) == Some(true)
            };
            used.extend(table.iter().filter(|(_, e)| inherits(e)).map(|(name, _)| name.clone()));
        } else {
            inherited(table, used);
        }
    }
}

fn unused(workspace: &Table, used: &BTreeSet<String>) -> Vec<Finding> {
    let listed = workspace.get("workspace").and_then(|w| w.get("dependencies"));
    listed
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(Table::keys)
        .filter(|name| !used.contains(*name))
        .map(|name| Finding::of("Cargo.toml", format!("no crate uses the dependency {name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_essay_is_more_than_a_line() {
        assert!(has_essay("//! What it is.\n//!\n//! How.\n"));
        assert!(!has_essay("//! What it is.\n\npub fn f() {}\n"));
    }

    #[test]
    fn a_dependency_that_nobody_inherits_is_unused() {
        let workspace: Table =
            "[workspace.dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\nd = \"1\"\n"
                .parse()
                .unwrap();
        let member: Table = "[dependencies]\na.workspace = true\nd = \"1\"\n\
                             [target.'cfg(unix)'.dev-dependencies]\nb = { workspace = true }\n"
            .parse()
            .unwrap();
        let mut used = BTreeSet::new();
        inherited(&member, &mut used);
        let found: Vec<_> = unused(&workspace, &used).into_iter().map(|f| f.what).collect();
        assert_eq!(found, ["no crate uses the dependency c", "no crate uses the dependency d"]);
    }
}
