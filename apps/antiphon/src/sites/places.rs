//! Finds the places of a file's sites in programs. Functions are looked up in CMD and in the
//! modules that the loader loads with it; the loader lists these (`--list`) without running any
//! code of CMD.
//!
//! Files that CMD loads later, or executes, are not known in advance: such a file is named by its
//! path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use antiphon_record::sites::Rule;

use super::file::{At, Entry};
use crate::program;
use crate::symbols::Symbols;

/// The most modules that are named when none of them has the function.
const NAMED: usize = 4;

/// The files that a program loads when it starts.
pub struct Modules {
    /// For each file, the path as the kernel shows it, and the path by which it was requested,
    /// which may be a link.
    paths: Vec<(PathBuf, PathBuf)>,
    symbols: Symbols,
}

impl Modules {
    /// The modules of `program` as it starts.
    pub fn of(program: &Path) -> Self {
        let program = program::interpreter(program);
        let mut paths = loaded(&resolved(&program));
        paths.insert(0, program);
        Self {
            paths: paths.into_iter().map(|path| (resolved(&path), path)).collect(),
            symbols: Symbols::default(),
        }
    }

    /// The rules by which the library recognises the places of an entry.
    ///
    /// # Errors
    ///
    /// Why there is no rule, in words.
    pub fn rules(&mut self, entry: &Entry) -> Result<Vec<Rule>, String> {
        let rule = |module: &str, offsets| Rule {
            module: module.to_owned(),
            offsets,
            policy: entry.policy.clone(),
        };
        match &entry.at {
            At::Offset { module, returns_to } => {
                let module = match &self.called(module)[..] {
                    _ if module.contains('/') => self.file(module)?,
                    [path] => path.clone(),
                    _ => module.clone(),
                };
                Ok(vec![rule(&module, last_byte(*returns_to))])
            }
            At::Function { name, module, returns_to } => {
                let modules = self.named(module.as_deref())?;
                let mut rules = Vec::new();
                for module in &modules {
                    for offsets in self.symbols.function(module, name) {
                        let offsets = match returns_to {
                            Some(into) => last_byte(offsets.start + into),
                            None => offsets,
                        };
                        rules.push(rule(module, offsets));
                    }
                }
                if rules.is_empty() { Err(missing(name, &modules)) } else { Ok(rules) }
            }
        }
    }

    /// The modules with that name; all modules if no name is given.
    fn named(&self, name: Option<&str>) -> Result<Vec<String>, String> {
        let Some(name) = name else {
            return Ok(self.paths.iter().map(|(path, _)| path.display().to_string()).collect());
        };
        if name.contains('/') {
            return Ok(vec![self.file(name)?]);
        }
        let found = self.called(name);
        if found.is_empty() {
            return Err(format!(
                "CMD does not load {name} when it starts; name the file by its path"
            ));
        }
        Ok(found)
    }

    /// The modules with this name, or that were requested by it.
    fn called(&self, name: &str) -> Vec<String> {
        let is = |path: &PathBuf| path.file_name().is_some_and(|file| file == name);
        let found = self.paths.iter().filter(|(path, asked)| is(path) || is(asked));
        found.map(|(path, _)| path.display().to_string()).collect()
    }

    /// The path of a file, as the kernel shows it.
    fn file(&self, path: &str) -> Result<String, String> {
        let found = std::fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(found.display().to_string())
    }
}

/// The last byte of the call that returns to `returns_to`.
fn last_byte(returns_to: u64) -> std::ops::Range<u64> {
    returns_to.saturating_sub(1)..returns_to.max(1)
}

fn missing(function: &str, modules: &[String]) -> String {
    let mut names: Vec<_> = modules
        .iter()
        .filter_map(|module| Path::new(module).file_name())
        .map(|name| name.to_string_lossy())
        .collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "no function {function:?} in {}{more}; write it as a report does, or name its file by its \
         path in module",
        names.join(", ")
    )
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The modules that the loader loads with a program; empty if the loader can't list them.
fn loaded(program: &Path) -> Vec<PathBuf> {
    let Some(loader) = program::loader(program) else { return Vec::new() };
    let listed = Command::new(loader).arg("--list").arg(program).stdin(Stdio::null()).output();
    let Ok(listed) = listed else { return Vec::new() };
    String::from_utf8_lossy(&listed.stdout).lines().filter_map(listed_path).collect()
}

/// The path in a line `name => /path (0x7f…)` or `/path (0x7f…)`.
fn listed_path(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    let path = line.split_once(" => ").map_or(line, |(_, path)| path);
    let path = path.rsplit_once(" (0x").map_or(path, |(path, _)| path);
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_has_paths() {
        let path = |line: &str| listed_path(line).map(|path| path.display().to_string());
        assert_eq!(path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"), Some("/lib/libc.so.6".into()));
        assert_eq!(path("\t/lib64/ld-linux.so.2 (0x00007f)"), Some("/lib64/ld-linux.so.2".into()));
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tlibx.so => not found"), None);
    }

    #[test]
    fn functions_are_found_in_what_a_program_loads() {
        let mut modules = Modules::of(Path::new("/proc/self/exe"));
        let entry = |at| Entry { line: 1, at, policy: "none".to_owned() };
        let function = |name: &str, module: Option<&str>, returns_to| {
            let module = module.map(str::to_owned);
            entry(At::Function { name: name.to_owned(), module, returns_to })
        };
        let all = modules.rules(&function("malloc", Some("libc.so.6"), None)).expect("a place");
        assert!(all.len() == 1 && all[0].module.ends_with("/libc.so.6"), "{all:?}");
        let one = modules.rules(&function("malloc", None, Some(5))).expect("a place");
        let in_libc = one.iter().find(|rule| rule.module == all[0].module).expect("that of libc");
        let begin = all[0].offsets.start;
        assert_eq!(in_libc.offsets, begin + 4..begin + 5);
        // This test itself, by the name that a report gives it.
        let own = "functions_are_found_in_what_a_program_loads";
        let own = format!("antiphon::sites::places::tests::{own}");
        assert!(modules.rules(&function(&own, None, None)).is_ok_and(|rules| !rules.is_empty()));

        let why = modules.rules(&function("no_such_function", None, None));
        assert!(why.is_err_and(|why| why.contains("libc.so.6") && why.contains("as a report")));
        let why = modules.rules(&function("malloc", Some("no-such.so"), None));
        assert!(why.is_err_and(|why| why.contains("by its path")));
        let offset = entry(At::Offset { module: "x.so".to_owned(), returns_to: 9 });
        let rules = modules.rules(&offset).expect("a rule");
        assert_eq!((&*rules[0].module, rules[0].offsets.clone()), ("x.so", 8..9));
        let offset = entry(At::Offset { module: "/no/such.so".to_owned(), returns_to: 9 });
        assert!(modules.rules(&offset).is_err_and(|why| why.contains("/no/such.so")));
    }
    #[test]
    fn a_file_has_the_name_that_it_was_asked_for_by_too() {
        let link = std::env::temp_dir().join(format!("antiphon-link-{}", std::process::id()));
        let real = resolved(Path::new("/proc/self/exe"));
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let mut modules = Modules::of(&link);
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        for module in [name(&link), name(&real)].map(|name| name.expect("a name")) {
            let at = At::Offset { module, returns_to: 9 };
            let rules = modules.rules(&Entry { line: 1, at, policy: "none".to_owned() });
            assert_eq!(rules.expect("a rule")[0].module, real.display().to_string());
        }
        std::fs::remove_file(&link).expect("gone");
    }
}
