//! Peers in other languages, whose source is part of this command. They are built when they are to
//! be measured.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use antiphon_report::failure::Failure;

/// The language of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Built by `go`.
    Go,
    /// Built by `c++`, and linked to Boost.Fiber.
    Boost,
}

/// A program in a temporary folder, which is removed when this is dropped.
pub struct Built(PathBuf);

const PROGRAM: &str = "program";

impl Language {
    /// The compiler, its arguments before the files, and those after them.
    fn compiler(self) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Go => ("go", &["build", "-o", PROGRAM], &[]),
            Self::Boost => (
                "c++",
                &["-std=c++17", "-O2", "-o", PROGRAM],
                &["-lboost_fiber", "-lboost_context", "-pthread"],
            ),
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Boost => "cpp",
        }
    }

    /// Returns the packages to install.
    fn package(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Boost => "g++ and libboost-fiber-dev",
        }
    }
}

impl Built {
    /// Builds a program from these files. The inner error says what is missing.
    ///
    /// # Errors
    ///
    /// If its folder can't be made.
    pub fn of(
        name: &str,
        language: Language,
        texts: &[&str],
    ) -> Result<Result<Self, String>, Failure> {
        let ending = language.ending();
        let folder = format!("antiphon-{ending}-{name}-{}", std::process::id());
        let built = Self(std::env::temp_dir().join(folder));
        let names: Vec<_> = (0..texts.len()).map(|number| format!("{number}.{ending}")).collect();
        let write = || names.iter().zip(texts).try_for_each(|(n, t)| fs::write(built.0.join(n), t));
        fs::create_dir(&built.0).and_then(|()| write()).map_err(|error| {
            Failure::measured(format!("can't write to {}: {error}", built.0.display()))
        })?;
        Ok(built.build(language, &names).map(|()| built))
    }

    fn build(&self, language: Language, files: &[String]) -> Result<(), String> {
        let (compiler, before, after) = language.compiler();
        let build = Command::new(compiler)
            .args(before)
            .args(files)
            .args(after)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output();
        let install = language.package();
        match build {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr);
                // The first error names the cause; later lines are consequences.
                let why = said.lines().find(|line| line.contains("error"));
                let why = why.or_else(|| said.lines().last()).unwrap_or("it said nothing");
                Err(format!("{compiler} failed: {why}; it takes {install}"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("no {compiler} on the PATH; install {install}"))
            }
            Err(error) => Err(format!("can't start {compiler}: {error}")),
        }
    }

    /// Returns the path of the program.
    pub fn program(&self) -> PathBuf {
        self.0.join(PROGRAM)
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        // A folder that can't be removed stays among the temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of the program, or an empty path if none was asked for.
///
/// # Errors
///
/// Why the program is missing.
pub fn program_of(built: Option<&Result<Built, String>>) -> Result<PathBuf, String> {
    match built {
        Some(built) => built.as_ref().map(Built::program).map_err(Clone::clone),
        None => Ok(PathBuf::new()),
    }
}

/// Replaces this process by the program, which prints the outcome of the repetition. Returns only
/// on failure, with the reason.
pub fn become_it(program: &Path, arguments: &[String]) -> String {
    format!("can't start {}: {}", program.display(), Command::new(program).args(arguments).exec())
}
