//! Finds the files of a crate that a file names, by paths that begin with `crate`, `super` or
//! `self`.
//!
//! A path is followed to the file that defines its name: `use crate::pool::Builder` names
//! `pool/builder.rs` if `pool/mod.rs` imports the name from there. A re-export alone is not an
//! import: a module that re-exports its children does not use them. Tests at the end of a file are
//! left out, because they may use everything above them.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{is_word, mask, words};

/// A path, from the crate's root.
type Path = Vec<String>;
/// The most re-exports through which a name is followed.
const STEPS: usize = 8;

/// The files of one crate.
pub struct Crate {
    /// The file of each module, by the module's path.
    files: BTreeMap<Path, String>,
    /// The names that each module imports from elsewhere.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
    /// The paths that a module's code names, without re-exports.
    uses: BTreeMap<Path, BTreeSet<Path>>,
}

impl Crate {
    /// The crate whose files below `source`, its `src/`, have these texts.
    pub fn of<'a>(source: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut one =
            Self { files: BTreeMap::new(), names: BTreeMap::new(), uses: BTreeMap::new() };
        for (file, text) in texts {
            let Some(module) = file.strip_prefix(source).and_then(module_of) else { continue };
            let masked = mask(text);
            let code = masked.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let (mut names, mut uses) = (BTreeMap::new(), BTreeSet::new());
            for (path, shown) in paths(code, &module) {
                if let Some(name) = shown {
                    names.insert(name, path);
                } else {
                    uses.insert(path);
                }
            }
            one.files.insert(module.clone(), file.to_owned());
            one.names.insert(module.clone(), names);
            one.uses.insert(module, uses);
        }
        one
    }

    /// The other files that each file names.
    pub fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let targets = |(file, paths): (_, Vec<(_, _)>)| {
            (file, paths.into_iter().map(|(target, _)| target).collect())
        };
        self.paths().map(targets).collect()
    }

    /// For each file, the other files that it names, each with the path that names it.
    pub fn paths(&self) -> impl Iterator<Item = (&str, Vec<(&str, String)>)> {
        self.uses.iter().map(|(module, uses)| {
            let file = self.files[module].as_str();
            let named = |path: &Path| Some((self.file(path, STEPS)?, path.join("::")));
            (file, uses.iter().filter_map(named).filter(|(target, _)| *target != file).collect())
        })
    }

    /// The file that defines what a path names.
    fn file(&self, path: &[String], steps: usize) -> Option<&str> {
        let module = (0..=path.len()).rev().find(|&end| self.files.contains_key(&path[..end]))?;
        let next = path.get(module).and_then(|name| self.names[&path[..module]].get(name));
        match next {
            Some(target) if steps > 0 => {
                let further = [target, &path[module + 1..]].concat();
                self.file(&further, steps - 1)
            }
            _ => self.files.get(&path[..module]).map(String::as_str),
        }
    }
}

/// The path of the module in a file below `src/`.
fn module_of(file: &str) -> Option<Path> {
    let mut path: Path = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "mod") || file == "lib.rs" || file == "main.rs" {
        path.pop();
    }
    Some(path)
}

/// A path that a module names, and the name under which the module re-exports it (`pub use`).
type Named = (Path, Option<String>);

/// The paths in the code of a module.
fn paths(code: &str, module: &[String]) -> Vec<Named> {
    let mut all = Vec::new();
    for start in ["crate", "super", "self"] {
        for at in words(code, start) {
            let before = code[..at].trim_end();
            let is_path = code[at + start.len()..].trim_start().starts_with("::");
            if is_path && !before.ends_with("::") {
                let absolute = |path: Path| absolute(&path, module);
                all.extend(named(&code[at..], before, absolute));
            }
        }
    }
    // A path that begins with the name of a child module.
    for at in words(code, "use") {
        let end = at + "use".len();
        let first = Words(&code[end..]).word().unwrap_or_default();
        if code.contains(&format!("mod {first};")) {
            let absolute = |path: Path| Some([module, &path].concat());
            all.extend(named(&code[end..], &code[..end], absolute));
        }
    }
    all
}

/// The paths of the use tree at the beginning of `text`, made absolute; `before` precedes it.
fn named(text: &str, before: &str, absolute: impl Fn(Path) -> Option<Path>) -> Vec<Named> {
    let mut found = Vec::new();
    tree(&mut Words(text), &mut Vec::new(), &mut found);
    let shown = is_shown(before);
    let name = |(path, alias): (Path, Option<String>)| {
        let path = absolute(path)?;
        let name = alias.or_else(|| path.last().cloned());
        Some((path, name.filter(|_| shown)))
    };
    found.into_iter().filter_map(name).collect()
}

/// Whether `before`, which precedes a path, ends in `pub use`, with any visibility.
fn is_shown(before: &str) -> bool {
    let Some(rest) = before.strip_suffix("use") else { return false };
    let rest = rest.trim_end();
    rest.ends_with("pub")
        || rest.ends_with(')')
            && rest.rsplit("pub").next().is_some_and(|inner| {
                inner.trim_start().starts_with('(') && !inner.contains([';', '{', '}'])
            })
}

/// A path from the crate's root; `None` if it leaves the crate.
fn absolute(path: &[String], module: &[String]) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        _ => {
            let ups = path.iter().take_while(|word| *word == "super").count();
            let base = module.len().checked_sub(ups)?;
            Some([&module[..base], &path[ups..]].concat())
        }
    }
}

/// The remaining text of a path.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn eat(&mut self, start: &str) -> bool {
        let rest = self.0.trim_start();
        let eaten = rest.strip_prefix(start);
        self.0 = eaten.unwrap_or(rest);
        eaten.is_some()
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        self.0 = &rest[end..];
        (end > 0).then(|| &rest[..end])
    }
}

/// The paths of a use tree, each with its alias; `prefix` precedes it.
fn tree(words: &mut Words<'_>, prefix: &mut Path, found: &mut Vec<(Path, Option<String>)>) {
    let length = prefix.len();
    loop {
        if words.eat("{") {
            while !words.eat("}") {
                let before = words.0.len();
                tree(words, prefix, found);
                if !words.eat(",") && words.0.len() == before {
                    break;
                }
            }
            break;
        }
        if words.eat("*") {
            found.push((prefix.clone(), None));
            break;
        }
        let Some(word) = words.word() else { break };
        if word != "self" || prefix.is_empty() {
            prefix.push(word.to_owned());
        }
        if !words.eat("::") {
            let alias = if words.eat("as ") { words.word().map(str::to_owned) } else { None };
            found.push((prefix.clone(), alias));
            break;
        }
    }
    prefix.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        let one = Crate::of("c/src/", texts.iter().copied());
        let each = one
            .edges()
            .into_iter()
            .flat_map(|(from, to)| to.into_iter().map(move |to| (from.to_owned(), to.to_owned())));
        each.map(|(from, to)| (from.replace("c/src/", ""), to.replace("c/src/", ""))).collect()
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn a_name_is_followed_to_the_file_that_defines_it() {
        let found = edges(&[
            ("c/src/lib.rs", "mod a;\nmod b;\npub use b::deep::Deep as Known;"),
            ("c/src/a.rs", "use crate::{b::Thing, Known};\nfn f() { super::b::run() }"),
            ("c/src/b/mod.rs", "mod thing;\nmod deep;\npub(crate) use thing::Thing;\nfn run() {}"),
            ("c/src/b/thing.rs", "use super::deep::{self, Deep};"),
            ("c/src/b/deep.rs", "fn f() { self::g() }"),
        ]);
        let expected = [
            pair("a.rs", "b/deep.rs"),
            pair("a.rs", "b/mod.rs"),
            pair("a.rs", "b/thing.rs"),
            pair("b/thing.rs", "b/deep.rs"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_stands_below_the_name_of_a_test_module_is_read() {
        let found = edges(&[
            ("c/src/main.rs", "mod a;\n#[cfg(test)]\nmod tests;\nuse a::A;"),
            ("c/src/a.rs", "pub struct A;"),
            ("c/src/tests.rs", ""),
        ]);
        assert_eq!(found, [pair("main.rs", "a.rs")]);
    }

    #[test]
    fn a_module_that_uses_its_child_imports_it() {
        let found = edges(&[
            ("c/src/main.rs", "mod a;\nuse a::A;"),
            ("c/src/a.rs", "// use crate::b;\npub struct A;\n#[cfg(test)]\nmod tests {\n}\n"),
        ]);
        assert_eq!(found, [pair("main.rs", "a.rs")]);
    }
}
