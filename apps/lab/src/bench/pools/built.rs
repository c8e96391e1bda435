//! Peers in other languages, the source of which is in this command: built when they are to be
//! measured.

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

/// A program in a folder of its own, which goes with this.
pub struct Built(PathBuf);

const PROGRAM: &str = "program";

impl Language {
    /// The compiler, which of its arguments come before the files, and which after them.
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

    /// The packages to install.
    fn package(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Boost => "g++ and libboost-fiber-dev",
        }
    }
}

impl Built {
    /// Builds a program of these files; says what is missing if that can't be.
    ///
    /// # Errors
    ///
    /// If there is no folder for it.
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
                // The first says what is missing, where what follows says what came of that.
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

    /// The program.
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

/// The path of the program, if there is to be one, and an empty path if not.
///
/// # Errors
///
/// Why there is none.
pub fn program_of(built: Option<&Result<Built, String>>) -> Result<PathBuf, String> {
    match built {
        Some(built) => built.as_ref().map(Built::program).map_err(Clone::clone),
        None => Ok(PathBuf::new()),
    }
}

/// Becomes the program, which prints the outcome of the repetition. Returns why it could not.
pub fn become_it(program: &Path, arguments: &[String]) -> String {
    format!("can't start {}: {}", program.display(), Command::new(program).args(arguments).exec())
}
