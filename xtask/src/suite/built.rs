//! Builds the test programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::list::Suite;
use crate::Failure;

/// A test program of a suite.
#[derive(Debug)]
pub struct Program {
    suite: &'static str,
    /// The name of its target: of the library, or of the file in `tests`.
    pub name: String,
    /// The directory of its package, in which it runs.
    package: PathBuf,
    /// The path of the program.
    pub executable: PathBuf,
    /// If set, only tests whose names contain this are run.
    filter: Option<&'static str>,
    /// Tests that are not run.
    skips: Vec<&'static str>,
}

impl Program {
    /// Returns whether it does not depend on real time: models for the checker (`models`) and for
    /// spin (`promela`), simulations (`sim`, `sim_*`), and the bare-metal image, whose clock counts
    /// instructions (`metal`, `metal_*`).
    pub fn is_timeless(&self) -> bool {
        let is = |kind: &str| {
            let rest = self.name.strip_prefix(kind);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        ["models", "promela"].contains(&self.name.as_str()) || is("sim") || is("metal")
    }

    /// The name of the program in the output.
    pub fn title(&self) -> String {
        let package = self.package.file_name().unwrap_or_default().to_string_lossy();
        let (suite, name) = (self.suite, &self.name);
        format!("{suite}: {package} {name}")
    }

    /// Returns whether its tests build a tree of their own: they mostly compile, and assert nothing
    /// on time. They run as one process, because their tests share what they prepare.
    pub fn builds_a_tree(&self) -> bool {
        ["mutants", "recipe"].contains(&self.name.as_str())
    }

    /// The command that runs it, as `cargo test` would.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.args(self.filter);
        command.args(self.skips.iter().flat_map(|test| ["--skip", test]));
        command
    }
}

/// Builds the test programs of a suite, and returns them sorted by package and name.
///
/// # Errors
///
/// If a program does not build. The compiler has then printed the reason.
pub fn build(root: &Path, suite: &'static Suite) -> Result<Vec<Program>, Failure> {
    println!("building: {}", suite.name);
    if let Some(example) = suite.example {
        // Not `cargo test --example`, which would turn it into a test program.
        let features =
            suite.arguments.iter().filter(|one| !one.starts_with("--test=") && **one != "--lib");
        let mut command = cargo(root, "build");
        command.args(features).arg(format!("--example={example}"));
        if !command.status()?.success() {
            return Err(format!("{}: the example {example} does not build", suite.name).into());
        }
    }
    let mut command = cargo(root, "test");
    command.args(["--no-run", "--message-format=json-render-diagnostics"]).args(suite.arguments);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{}: the tests do not build", suite.name).into());
    }
    let mut built = executables(&String::from_utf8_lossy(&output.stdout));
    // Cargo names them in the order in which they are ready.
    built.sort_by(|a, b| (&a.manifest_path, &a.target).cmp(&(&b.manifest_path, &b.target)));
    Ok(built
        .into_iter()
        .map(|Built { target, manifest_path, executable }| Program {
            suite: suite.name,
            filter: suite.filter(&target),
            skips: suite.skipped(&target),
            package: manifest_path.parent().unwrap_or(root).to_owned(),
            name: target,
            executable,
        })
        .collect())
}

/// The command that runs the tests of the documentation.
pub fn documentation(root: &Path, suite: &Suite) -> Command {
    let mut command = cargo(root, "test");
    command.args(["--doc", "--no-fail-fast"]).args(suite.arguments);
    command
}

fn cargo(root: &Path, verb: &str) -> Command {
    let mut command =
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args([verb, "--locked"]).current_dir(root);
    command
}

/// A test program that cargo's messages name.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    /// The name of its target.
    pub target: String,
    /// The manifest of its package.
    pub manifest_path: PathBuf,
    /// The path of the program.
    pub executable: PathBuf,
}

/// The test programs that cargo's messages name.
pub fn executables(messages: &str) -> Vec<Built> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
        target: Option<Target>,
        manifest_path: Option<PathBuf>,
        profile: Option<Profile>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        // Programs that tests run, and examples, are built at the same time.
        .filter(|message| message.profile.as_ref().is_some_and(|profile| profile.test))
        .filter_map(|message| {
            Some(Built {
                target: message.target?.name,
                manifest_path: message.manifest_path?,
                executable: message.executable?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_messages() {
        let message = |name: &str, test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"target\":{{\"name\":\"{name}\"}},\
                 \"manifest_path\":\"/x/Cargo.toml\",\"profile\":{{\"test\":{test}}},\
                 \"executable\":{executable}}}\n"
            )
        };
        let messages = message("lib", false, "null")
            + &message("example", false, "\"/x/example\"")
            + &message("model_a", true, "\"/x/model_a\"")
            + "{\"reason\":\"build-finished\",\"success\":true}\n";
        let expected = Built {
            target: "model_a".to_owned(),
            manifest_path: "/x/Cargo.toml".into(),
            executable: "/x/model_a".into(),
        };
        assert_eq!(executables(&messages), [expected]);
    }

    #[test]
    fn models_simulations_and_the_image_are_timeless() {
        let program = |name: &str| Program {
            suite: "s",
            name: name.to_owned(),
            package: "/x/crates/a".into(),
            executable: "/x/program".into(),
            filter: None,
            skips: Vec::new(),
        };
        for (name, expected) in [
            ("models", true),
            ("model", false),
            ("promela", true),
            ("sim", true),
            ("sim_rw", true),
            ("simple", false),
            ("metal", true),
            ("metal_runtimes", true),
            ("net", false),
        ] {
            assert_eq!(program(name).is_timeless(), expected, "{name}");
        }
        assert!(program("recipe").builds_a_tree() && !program("net").builds_a_tree());
        assert_eq!(program("net").title(), "s: a net");
    }
}
