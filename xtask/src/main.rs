//! Checks of this tree beyond those of cargo: `cargo xtask VERB`.
//!
//! | verb | what it checks |
//! |---|---|
//! | `claims` | `docs/claims.toml`: form, live commands, counts; `--check`: the commands' figures |
//! | `tidy` | style as a test: columns, lengths, banned words, fences, links, rooms and edges |
//! | `tests` | the whole test suite, several programs at a time where that changes nothing |
//! | `mutants` | the models: each weakened ordering and each broken invariant must be noticed |
//! | `hunt` | the preload library: no hang under a program made to find one |
//! | `programs` | real programs behave the same under `antiphon`; `--measure`: how fast they are |
//! | `vm` | the scheduler of sched_ext, in a virtual machine with a kernel of Debian |
//! | `pictures` | no check: saves the charts of a report's page as files, for the docs |
//! | `install` | no check: builds the library for C and C++ and installs it |
//!
//! Each verb prints its findings as `file:line: what`, and exits with 0 if there were none, 1 if
//! there were some, 2 if its arguments were wrong or it could not do its work.

mod claims;
mod finding;
mod hunt;
mod install;
mod metadata;
mod mutants;
mod pictures;
mod programs;
mod source;
mod suite;
mod tidy;
mod tree;
mod vm;

use std::process::ExitCode;

use finding::Outcome;

/// Why a verb could not do its work: a sentence for the user.
type Failure = Box<dyn std::error::Error>;

/// A verb: its name, what it does, and its line in `--help`.
type Verb = (&'static str, fn(lexopt::Parser) -> Result<Outcome, Failure>, &'static str);

/// All verbs.
const VERBS: [Verb; 9] = [
    (
        "claims",
        claims::run,
        "check docs/claims.toml  [--readme] [--strict]; or run its commands and compare  --check \
         [NAME… | --all] [--part N/M] [--changed BASE] [--tested] [--limit S] [--record F]",
    ),
    ("tidy", tidy::run, "check the style and the shape of the tree  [--fewer | --edges FOLDER]"),
    ("tests", suite::run, "build and run all tests  [--times FILE] [--report FILE]"),
    (
        "mutants",
        mutants::run,
        "weaken the code, run the models  [--changed BASE | --all | --file F…] [--minutes N] \
         [--times FILE]",
    ),
    ("hunt", hunt::run, "look for a hang of the locks  [--seconds S] [--seed N] [--library PATH]"),
    (
        "programs",
        programs::run,
        "compare real programs without and with antiphon  [--quick] [--only LIST] [--mode LIST] \
         [--install] [--antiphon PATH] [--list F] [--jobs N]; or time them  --measure [--pairs N] \
         [--threads LIST] [--only LIST] [--lock L] [--record F]",
    ),
    (
        "vm",
        vm::run,
        "run the scheduler's cases in QEMU  [--suite S] [--case NAME] [--limit S] [--kernel FILE]",
    ),
    ("pictures", pictures::run, "put the charts of a page into docs/pictures  PAGE NAME…"),
    (
        "install",
        install::run,
        "build and place the library for C and C++  --prefix P [--destdir D]",
    ),
];

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    match arguments.next()? {
        Some(Value(verb)) => match VERBS.iter().find(|(name, ..)| verb == *name) {
            Some((_, run, _)) => run(arguments),
            None => Err(format!("no verb {verb:?}; there are {}", verbs().join(", ")).into()),
        },
        Some(Short('h') | Long("help")) => {
            for (verb, _, what) in VERBS {
                println!("cargo xtask {verb:<8} {what}");
            }
            Ok(Outcome::Clean)
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err(format!("which verb? There are {}", verbs().join(", ")).into()),
    }
}

/// The names of the verbs.
fn verbs() -> Vec<&'static str> {
    VERBS.iter().map(|(verb, ..)| *verb).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_verb_is_an_error_that_names_the_known_ones() {
        let failure = run(lexopt::Parser::from_args(["nothing"])).unwrap_err().to_string();
        assert!(failure.contains("claims, tidy, tests, mutants"), "{failure}");
        assert!(run(lexopt::Parser::from_args(["--nothing"])).is_err());
        assert!(run(lexopt::Parser::from_args(Vec::<String>::new())).is_err());
    }
}
