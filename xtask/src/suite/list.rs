//! The suites to build and run: the workspace, and features that change the code.

/// The tests of one set of features.
pub struct Suite {
    /// The name under which the suite is shown.
    pub name: &'static str,
    /// The arguments for `cargo test`: packages, features, and the programs if not all.
    ///
    /// Cargo compiles a dependency again for each different set of features that its users request.
    /// Where a part of the workspace is selected, both programs are selected with it: nothing of
    /// them is built, but the dependencies then have the same features as in the workspace.
    pub arguments: &'static [&'static str],
    /// Programs of which only the tests whose names contain this are run.
    pub filters: &'static [(&'static str, &'static str)],
    /// Tests that are not run, because another suite builds what they need.
    pub skips: &'static [(&'static str, &'static str)],
    /// An example that these tests run; it is built only for them.
    pub example: Option<&'static str>,
    /// Whether the examples in the documentation are run, too.
    pub documentation: bool,
}

impl Suite {
    /// The filter for a program: only tests whose names contain it are run. `None`: all are run.
    pub fn filter(&self, program: &str) -> Option<&'static str> {
        self.filters.iter().find(|(name, _)| *name == program).map(|(_, filter)| *filter)
    }

    /// The tests of a program that are not run here.
    pub fn skipped(&self, program: &str) -> Vec<&'static str> {
        self.skips.iter().filter(|(name, _)| *name == program).map(|(_, test)| *test).collect()
    }
}

/// A suite of programs all of whose tests are run.
const PART: Suite = Suite {
    name: "",
    arguments: &[],
    filters: &[],
    skips: &[],
    example: None,
    documentation: false,
};

/// All suites.
pub const ALL: [Suite; 5] = [
    Suite {
        name: "workspace",
        arguments: &[
            "--workspace",
            "--features=antiphon/arc_lock,antiphon/deterministic,antiphon/name_hogs",
        ],
        // This test is run in `debug information`.
        skips: &[("hog_names", "who_looks_at_the_program_is_told_of_hogs")],
        documentation: true,
        ..PART
    },
    // Sockets by io_uring, too: this is a feature, and the suite above waits for them by epoll.
    Suite {
        name: "io_uring",
        arguments: &[
            "--package=antiphon",
            "--package=antiphon-coop",
            "--package=antiphon-linux",
            "--package=antiphon-cli",
            "--package=antiphon-lab",
            "--features=antiphon-coop/io_uring",
            "--lib",
            "--test=net",
            "--test=net_backend",
            "--test=net_fork",
            "--test=net_fork_waits",
            "--test=net_number",
            "--test=event_fibers",
            "--test=event_fiber_ends",
            "--test=loop_examples",
        ],
        filters: &[
            ("antiphon_linux", "files::"),
            ("antiphon", "fiber::"),
            ("antiphon_coop", "event_loop::"),
            ("loop_examples", "loop_backends"),
        ],
        example: Some("loop_backends"),
        ..PART
    },
    // Built like a release: in optimised code, names of functions come from tables of lines.
    Suite {
        name: "optimised",
        arguments: &[
            "--package=antiphon",
            "--package=antiphon-cli",
            "--package=antiphon-lab",
            "--test=census",
            "--config=profile.dev.package.antiphon.opt-level=1",
            "--config=profile.dev.package.antiphon-linux.opt-level=1",
            "--config=profile.dev.package.antiphon-platform.opt-level=1",
            "--config=profile.dev.package.antiphon-runtime.opt-level=1",
            "--config=profile.dev.package.antiphon-sync.opt-level=1",
        ],
        ..PART
    },
    // With full debug information, functions get their names from that.
    Suite {
        name: "debug information",
        arguments: &[
            "--package=antiphon",
            "--package=antiphon-cli",
            "--package=antiphon-lab",
            "--features=antiphon/arc_lock,antiphon/deterministic,antiphon/name_hogs",
            "--test=census",
            "--test=hog_names",
            "--config=profile.dev.package.antiphon.debug='full'",
            "--config=profile.dev.package.antiphon-linux.debug='full'",
            "--config=profile.dev.package.antiphon-platform.debug='full'",
            "--config=profile.dev.package.antiphon-runtime.debug='full'",
            "--config=profile.dev.package.antiphon-sync.debug='full'",
        ],
        ..PART
    },
    // With migrating fibers, other fibers are also compiled to different code.
    Suite {
        name: "migrating",
        arguments: &[
            "--package=antiphon",
            "--package=antiphon-cli",
            "--package=antiphon-lab",
            "--features=antiphon/migrating",
            "--lib",
            "--test=fiber",
            "--test=fiber_ends",
            "--test=fiber_moves",
            "--test=fiber_seats",
        ],
        ..PART
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_for_a_program_that_is_built() {
        for suite in &ALL {
            for (program, _) in suite.filters {
                let (test, library) = (format!("--test={program}"), suite.arguments);
                let is_library = program.starts_with("antiphon") && library.contains(&"--lib");
                assert!(is_library || library.contains(&test.as_str()), "{program}");
            }
        }
    }

    #[test]
    fn a_test_that_a_suite_skips_is_run_by_another() {
        for (program, test) in ALL.iter().flat_map(|suite| suite.skips) {
            let name = format!("--test={program}");
            let runs = |suite: &&Suite| {
                suite.arguments.contains(&name.as_str()) && suite.filter(program).is_none()
            };
            assert!(ALL.iter().any(|suite| runs(&suite)), "{program}: {test}");
        }
    }

    #[test]
    fn filters_are_found_by_program() {
        let ring = &ALL[1];
        assert_eq!(ring.filter("loop_examples"), Some("loop_backends"));
        assert_eq!(ring.filter("net"), None);
    }
}
