//! The modes of `antiphon` in which each case is run.

use crate::Failure;

/// A mode of `antiphon`.
#[derive(Debug)]
pub struct Mode {
    /// The name of the mode in this program.
    pub name: &'static str,
    /// The arguments of `antiphon` in this mode.
    pub arguments: &'static [&'static str],
    /// Whether it writes a trace, to the file after `--out`.
    pub traces: bool,
}

const fn run(name: &'static str, arguments: &'static [&'static str]) -> Mode {
    Mode { name, arguments, traces: false }
}

/// All modes.
pub static ALL: [Mode; 6] = [
    run("exchange", &["run"]),
    run("light", &["run", "--lock", "shfl-mutex+light"]),
    run("profile", &["run", "--profile"]),
    Mode { name: "record", arguments: &["record"], traces: true },
    run("glibc", &["run", "--lock", "glibc", "--profile"]),
    run("alone", &["run", "--no-children"]),
];

impl Mode {
    /// The mode with that name.
    ///
    /// # Errors
    ///
    /// If there is no such mode.
    pub fn named(name: &str) -> Result<&'static Self, Failure> {
        ALL.iter().find(|mode| mode.name == name).ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|mode| mode.name).collect();
            format!("no mode {name:?}; there are {}", names.join(", ")).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_found_by_name() {
        assert!(Mode::named("light").is_ok_and(|mode| mode.arguments.contains(&"--lock")));
        assert!(Mode::named("dark").is_err_and(|why| why.to_string().contains("exchange, light")));
    }
}
