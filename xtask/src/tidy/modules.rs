//! Finds dead files: Rust files under `src` that no module declares.
//!
//! Files are searched where a `mod x;` of the parent file would find them; a `mod` inside an inline
//! module counts as its parent's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::source::{is_word, mask, words};
use crate::{Failure, tree};

/// Each file under a `src` that is neither the root of a target nor declared by a `mod`.
pub fn check(root: &Path, files: &[String], metadata: &Metadata) -> Result<Vec<Finding>, Failure> {
    let targets = metadata.packages.iter().flat_map(|package| &package.targets);
    let roots: BTreeSet<_> = targets
        .filter_map(|target| target.src_path.strip_prefix(root).ok()?.to_str())
        .map(str::to_owned)
        .collect();
    let mut texts = BTreeMap::new();
    for file in files.iter().filter(|f| f.ends_with(".rs") && f.contains("src/")) {
        texts.insert(file.clone(), tree::text(root, file)?.unwrap_or_default());
    }
    Ok(dead(&roots, &texts))
}

fn dead(roots: &BTreeSet<String>, texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let named: BTreeSet<_> =
        texts.iter().flat_map(|(file, text)| children(roots, file, text)).collect();
    texts
        .keys()
        .filter(|file| !roots.contains(*file) && !named.contains(*file))
        .map(|file| Finding::of(file, "no module names this file"))
        .collect()
}

/// The files that the `mod x;` and `#[path = "x"]` of `file` may mean.
fn children(roots: &BTreeSet<String>, file: &str, text: &str) -> Vec<String> {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    // The modules of `a.rs` are in `a/`; those of a root or of a `mod.rs` beside it.
    let below = match name {
        "mod.rs" => directory.to_owned(),
        _ if roots.contains(file) => directory.to_owned(),
        _ => format!("{directory}/{}", name.trim_end_matches(".rs")),
    };
    let masked = mask(text);
    let modules = words(&masked, "mod").filter_map(|at| {
        let rest = masked[at + "mod".len()..].trim_start();
        let end = rest.bytes().position(|byte| !is_word(byte))?;
        rest[end..].trim_start().starts_with(';').then(|| &rest[..end])
    });
    let paths = text.lines().filter_map(|line| {
        let path = line.trim().strip_prefix("#[path = \"")?.split('"').next()?;
        Some(format!("{directory}/{path}"))
    });
    modules
        .flat_map(|module| [format!("{below}/{module}.rs"), format!("{below}/{module}/mod.rs")])
        .chain(paths)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_dead() {
        let roots = BTreeSet::from(["c/src/lib.rs".to_owned()]);
        let texts = [
            ("c/src/lib.rs", "mod a;\npub(crate) mod b;\n// mod d;\nmod inline { }\n"),
            ("c/src/a.rs", "mod x;\n#[path = \"odd.rs\"]\nmod y;"),
            ("c/src/a/x.rs", ""),
            ("c/src/odd.rs", ""),
            ("c/src/b/mod.rs", "mod z;"),
            ("c/src/b/z.rs", ""),
            ("c/src/d.rs", ""),
            ("c/src/x.rs", ""),
            ("c/src/inline.rs", ""),
        ]
        .map(|(file, text)| (file.to_owned(), text.to_owned()));
        let found = dead(&roots, &BTreeMap::from(texts));
        let files: Vec<_> = found.iter().map(|finding| finding.file.as_str()).collect();
        assert_eq!(files, ["c/src/d.rs", "c/src/inline.rs", "c/src/x.rs"]);
    }
}
