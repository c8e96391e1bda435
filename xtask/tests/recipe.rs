//! The recipe for a lock in `CONTRIBUTING.md`, followed to the letter on a copy of three crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A workspace below the system's temporary directory, removed at the end.
struct Tree(PathBuf);

/// A crate with a list that is made from the registry, as the models' list is.
const LIST: &str = "\
macro_rules! list {
    (classic: $(
        $name:literal: $file:ident::$lock:ident, $bytes:literal,
        $memory:ident, $waits:literal, $order:literal, ($bounds:ident $(, $small:literal)*);
    )+) => {
        pub const NAMES: &[&str] = &[$($name),+];
        pub fn sizes<P: antiphon_platform::Platform>() -> Vec<usize> {
            vec![$(size_of::<antiphon_rivals::classic::$lock<P $(, $small)*>>()),+]
        }
    };
}
antiphon_rivals::locks!(classic => list);
#[test]
fn the_new_lock_is_listed() {
    assert!(NAMES.contains(&\"mine\"), \"{NAMES:?}\");
}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

impl Tree {
    fn new() -> Self {
        let tree = Self(std::env::temp_dir().join(format!("xtask-recipe-{}", std::process::id())));
        tree.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        tree.package("platform", &[]);
        tree.package("sync", &["platform"]);
        tree.package("rivals", &["platform", "sync"]);
        for name in ["platform", "sync", "rivals"] {
            let source = format!("crates/{name}/src");
            copy(&root().join(&source), &tree.0.join(&source));
        }
        tree.package("list", &["platform", "rivals"]);
        tree.write("crates/list/src/lib.rs", LIST);
        tree
    }

    fn package(&self, name: &str, below: &[&str]) {
        let below: String = below
            .iter()
            .map(|name| format!("antiphon-{name} = {{ path = \"../{name}\" }}\n"))
            .collect();
        self.write(
            &format!("crates/{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"antiphon-{name}\"\nedition = \"2024\"\n\
                 [dependencies]\n{below}"
            ),
        );
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Puts `line` before the first line of `file` that begins with `mark`.
    fn insert(&self, file: &str, mark: &str, line: &str) {
        let text = self.read(file);
        let lines = text.lines();
        let at = lines.clone().position(|line| line.trim_start().starts_with(mark)).unwrap();
        let (before, after): (Vec<_>, Vec<_>) = (lines.clone().take(at).collect(), lines.collect());
        let lines = before.into_iter().chain([line]).chain(after[at..].iter().copied());
        self.write(file, &lines.map(|line| format!("{line}\n")).collect::<String>());
    }

    /// Tests the crate with the list. A warning is an error.
    fn test(&self) -> (bool, String) {
        let Output { status, stdout, stderr } = Command::new(env!("CARGO"))
            .args(["test", "--quiet", "--offline", "--package=antiphon-list", "--lib"])
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .env("RUSTFLAGS", "-D warnings")
            .output()
            .unwrap();
        (status.success(), String::from_utf8([stdout, stderr].concat()).unwrap())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

#[test]
fn a_lock_is_a_file_and_its_mod_line_and_a_row() {
    let guide = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let recipe = guide.split("## Recipe: ").find(|part| part.starts_with("a lock\n")).unwrap();
    // The first code of the recipe that begins so and is of the new lock.
    let said = |begins: &str| {
        let mut codes = recipe.split('`').skip(1).step_by(2);
        let found =
            codes.find(|code| code.starts_with(begins) && code.to_lowercase().contains("mine"));
        found.unwrap_or_else(|| panic!("the recipe has no {begins}…"))
    };
    let tree = Tree::new();

    // Step 1, by a copy of the ticket lock.
    let ticket = tree.read("crates/rivals/src/classic/ticket.rs");
    let (before, _) = ticket.split_once("    pub(crate) fn is_held").expect("it has this function");
    let (own, _) = before.rsplit_once("\n\n").expect("functions before it");
    let implemented = said("antiphon_sync::impl_lock!");
    let mine = format!("{}\n}}\n\n{implemented}\n", own.replace("Ticket", "Mine"));
    tree.write(said("crates/rivals/src/classic/"), &mine);
    // Step 2; without step 3 it is a warning.
    tree.insert("crates/rivals/src/classic/mod.rs", "mod tas;", said("mod "));
    let (passed, text) = tree.test();
    assert!(!passed && text.contains("never used"), "{text}");
    // Step 3.
    tree.insert("crates/rivals/src/registry.rs", "\"futex\":", said("\"mine\":"));
    let (passed, text) = tree.test();
    assert!(passed, "{text}");
}
