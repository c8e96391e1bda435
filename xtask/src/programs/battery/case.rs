//! The entries in the list of the battery.

use std::path::PathBuf;

use serde::Deserialize;

use super::process::is_root;

/// The list.
#[derive(Deserialize)]
pub struct List {
    pub case: Vec<Case>,
}

/// One case. All scripts are run by `sh -e` in the run's directory, with these variables:
///
/// | variable | value |
/// |---|---|
/// | `PORT` | a port of loopback on which nothing listens |
/// | `INPUT` | a text file of some hundred kilobytes |
/// | `SOURCES` | the folder of the C programs |
/// | `HOME` | the run's directory |
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Case {
    pub name: String,
    /// Debian packages that it needs.
    pub packages: Vec<String>,
    /// Programs that must be installed; by default, the program that `run` executes without a
    /// shell.
    pub needs: Vec<String>,
    /// A script that runs before, without `antiphon`: once for all runs, which begin with a copy of
    /// its results, or for each run if it mentions `PORT`.
    pub prepare: Option<String>,
    /// A script around `antiphon` (or around CMD, without it), which is `"$@"`.
    pub around: Option<String>,
    /// CMD. A line without special characters of the shell is executed without a shell.
    pub run: String,
    /// The script that succeeds when the server answers.
    pub ready: Option<String>,
    /// The client of a server; its output is the server's answer.
    pub ask: Option<String>,
    /// Whether the server goes to the background.
    pub daemon: bool,
    /// The file to which the server writes its process id.
    pub pid_file: Option<String>,
    /// Whether it belongs to the quick subset.
    pub quick: bool,
    /// Whether it needs root.
    pub root: bool,
    /// Whether the files that it leaves are not compared, because they contain times or ids.
    pub files_differ: bool,
    /// Whether its stderr is not compared, because it contains times or ids.
    pub stderr_differs: bool,
}

impl Case {
    /// The words of CMD.
    pub fn command(&self) -> Vec<String> {
        let words = || self.run.split_whitespace().map(str::to_owned);
        if self.run.contains(SHELLS) {
            return ["sh", "-ec", &self.run].map(str::to_owned).to_vec();
        }
        words().collect()
    }

    /// The first of the programs that it needs and that is missing.
    pub fn missing(&self) -> Option<String> {
        let mut needs = self.needs.clone();
        if needs.is_empty() {
            needs.extend(self.command().into_iter().next());
        }
        needs.into_iter().find(|name| found(name).is_none() && !name.starts_with("./"))
    }

    /// Returns whether its preparation is valid for all runs.
    pub fn is_prepared_once(&self) -> bool {
        self.prepare.as_ref().is_some_and(|script| !script.contains("PORT"))
    }

    /// Why it can't be run here, if it can't.
    pub fn obstacle(&self) -> Option<String> {
        if self.root && !is_root() {
            return Some("needs root".to_owned());
        }
        let missing = self.missing()?;
        Some(match &self.packages[..] {
            [] => format!("no {missing} on this machine"),
            packages => format!("no {missing} on this machine (packages: {})", packages.join(" ")),
        })
    }
}

/// The characters that make a line a command for a shell.
const SHELLS: &[char] =
    &['|', '&', ';', '<', '>', '$', '`', '"', '\'', '*', '?', '(', ')', '{', '}', '#', '\n', '='];

/// The path of that program: a path itself, or found on `PATH` or where Debian has servers.
fn found(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let servers = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(servers);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(run: &str) -> Case {
        Case { run: run.to_owned(), ..Case::default() }
    }

    #[test]
    fn a_plain_line_needs_no_shell() {
        assert_eq!(case("xz -T4  -k x").command(), ["xz", "-T4", "-k", "x"]);
        assert_eq!(case("a | b").command(), ["sh", "-ec", "a | b"]);
        assert_eq!(case("X=1 a").command()[0], "sh");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(case("sh -c x").missing(), None);
        assert_eq!(case("./made-before").missing(), None);
        let mut none = case("no-such-program-here x");
        none.packages = vec!["package".to_owned()];
        let why = none.obstacle();
        assert!(why.is_some_and(|why| why.contains("no-such") && why.ends_with("package)")));
        let mut none = case("sh");
        none.needs = vec!["/no/such/file".to_owned()];
        assert_eq!(none.missing(), Some("/no/such/file".to_owned()));
    }
}
