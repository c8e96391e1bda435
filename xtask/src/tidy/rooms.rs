//! The rooms of the tree, that is, the layers of its crates: dependencies point down only.
//!
//! ```text
//!   antiphon-platform ◄── antiphon-sync ◄── antiphon-runtime
//!          ▲                   ▲                   ▲
//!   linux, check, sim,    antiphon ────────────────┘
//!   wakeup ◄── metal ◄── kernel
//!                              ▲
//!                   preload, antiphon-coop
//!                              ▲
//!             capi, preload-coop, report, player
//!                         ▲      ▲       ▲
//!             record ◄── the command, the laboratory ──► models
//!                             └──► trace, replay ◄──┘
//! ```
//!
//! `antiphon-shared`, `antiphon-clock` and `antiphon-message` stand beside `antiphon`, on the same
//! crates: they use no fibers and no pools.
//!
//! `antiphon-scx`, the scheduler of sched_ext, stands on `runtime`, whose policy it is compared
//! with, and on `hints` and `btf`, which depend on nothing: the command and these checks use them,
//! too.
//!
//! `rivals` stands on `sync`, beside `runtime`: only the models, replays, the command's list of
//! locks and the laboratory depend on it.
//!
//! The command never depends on the laboratory, nor on other projects' code that serves for
//! comparison: users build the command to run their programs.
//!
//! A back end never depends on an algorithm, nor an algorithm on a back end, except in tests. Both
//! meet in the models: programs of the algorithms for the checker.

use std::path::Path;

use crate::finding::Finding;
use crate::metadata::{Dependency, Metadata, Package};

/// A crate of the tree, and the crates of the tree that it may depend on.
struct Room {
    name: &'static str,
    /// Normal and build dependencies.
    below: &'static [&'static str],
    /// Further dependencies of its tests.
    tested_on: &'static [&'static str],
}

const fn room(
    name: &'static str,
    below: &'static [&'static str],
    tested_on: &'static [&'static str],
) -> Room {
    Room { name, below, tested_on }
}

const PLATFORM: &str = "antiphon-platform";
const SYNC: &str = "antiphon-sync";
const RIVALS: &str = "antiphon-rivals";
const RUNTIME: &str = "antiphon-runtime";
const LINUX: &str = "antiphon-linux";
const CHECK: &str = "antiphon-check";
const SIM: &str = "antiphon-sim";
const METAL: &str = "antiphon-metal";
const WAKEUP: &str = "antiphon-wakeup";
const MODELS: &str = "antiphon-models";
const FACADE: &str = "antiphon";
const CLOCK: &str = "antiphon-clock";
const COOP: &str = "antiphon-coop";
const MESSAGE: &str = "antiphon-message";
const SHARED: &str = "antiphon-shared";
const BACK_ENDS: &[&str] = &[LINUX, CHECK, SIM];
const RECORD: &str = "antiphon-record";
const TRACE: &str = "antiphon-trace";
const REPLAY: &str = "antiphon-replay";
const BTF: &str = "antiphon-btf";
const HINTS: &str = "antiphon-hints";
const LIBRARY: &[&str] = &[FACADE, CLOCK, COOP, RUNTIME, SYNC, LINUX, PLATFORM];
const PRELOADED: &[&str] = &[FACADE, RUNTIME, SYNC, LINUX, PLATFORM, RECORD];
const PRELOADED_COOP: &[&str] = &[COOP, LINUX, PLATFORM, RECORD];
const PLAYER: &str = "antiphon-player";
const REPORT: &str = "antiphon-report";
/// The crates below the command that users run on their programs: no checker, no models, no player.
const COMMAND: &[&str] =
    &[FACADE, COOP, SYNC, RIVALS, LINUX, PLATFORM, RECORD, TRACE, REPLAY, SIM, REPORT, BTF, HINTS];
const LABORATORY: &[&str] = &[
    FACADE, CLOCK, COOP, MESSAGE, RUNTIME, SYNC, RIVALS, LINUX, PLATFORM, RECORD, TRACE, REPLAY,
    CHECK, SIM, METAL, WAKEUP, MODELS, PLAYER, REPORT,
];

/// All crates. A new crate must be added here with its allowed dependencies.
const ROOMS: [Room; 30] = [
    room(PLATFORM, &[], &[]),
    room(SYNC, &[PLATFORM], BACK_ENDS),
    room(RIVALS, &[SYNC, PLATFORM], &[LINUX, SIM]),
    room(RUNTIME, &[SYNC, PLATFORM], BACK_ENDS),
    room(LINUX, &[PLATFORM, HINTS], &[]),
    room(CHECK, &[PLATFORM], &[]),
    room(SIM, &[PLATFORM], &[]),
    // How CPUs wake each other: for any kernel.
    room(WAKEUP, &[PLATFORM], &[]),
    room(METAL, &[WAKEUP, PLATFORM], &[]),
    // The image is linked of all layers, as a program is.
    room("antiphon-kernel", &[METAL, RUNTIME, SYNC, PLATFORM], &[]),
    // The models run the scheduler of bare metal: code of a back end, in another one.
    room(MODELS, &[RUNTIME, SYNC, RIVALS, PLATFORM, CHECK, WAKEUP, METAL, RECORD], &[]),
    room(RECORD, &[], &[]),
    room(TRACE, &[], &[]),
    room(REPLAY, &[SYNC, RIVALS, PLATFORM, SIM, TRACE], &[]),
    // The simulator: for its users' tests, and only with a feature.
    room(FACADE, &[RUNTIME, SYNC, LINUX, PLATFORM, SIM], &[CHECK]),
    room(SHARED, &[SYNC, LINUX, PLATFORM], &[]),
    room(CLOCK, &[SYNC, LINUX], &[]),
    room(MESSAGE, &[RUNTIME, LINUX, PLATFORM], &[]),
    room(COOP, &[FACADE, RUNTIME, SYNC, LINUX, PLATFORM, HINTS], &[SHARED]),
    room("antiphon-capi", LIBRARY, &[]),
    room("antiphon-preload", PRELOADED, &[]),
    room("antiphon-preload-coop", PRELOADED_COOP, &[]),
    room(REPORT, &[COOP, LINUX, SIM], &[]),
    room("antiphon-cli", COMMAND, &[]),
    room("antiphon-lab", LABORATORY, &[]),
    room(PLAYER, LIBRARY, &[]),
    room(BTF, &[], &[]),
    room(HINTS, &[], &[]),
    // The policy in Rust, with which the one in the kernel is compared; loops and locks under it.
    room("antiphon-scx", &[BTF, COOP, HINTS, RUNTIME, SYNC, LINUX, PLATFORM], &[]),
    room("xtask", &[BTF], &[]),
];

/// Finds dependencies that do not point down, crates without a room, and rooms without a crate.
pub fn check(root: &Path, metadata: &Metadata) -> Vec<Finding> {
    let is_there = |room: &&Room| metadata.packages.iter().any(|one| one.name == room.name);
    let empty = ROOMS.iter().filter(|room| !is_there(room)).map(|room| {
        Finding::of("xtask/src/tidy/rooms.rs", format!("there is no crate {}", room.name))
    });
    metadata.packages.iter().flat_map(|package| check_package(root, package)).chain(empty).collect()
}

fn check_package(root: &Path, package: &Package) -> Vec<Finding> {
    let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
    let find = |what| Finding::of(&manifest.display().to_string(), what);
    let Some(room) = ROOMS.iter().find(|room| room.name == package.name) else {
        return vec![find("the crate has no room: see the list in xtask's `rooms`".to_owned())];
    };
    package
        .dependencies
        .iter()
        .filter(|edge| edge.path.is_some() && !allows(room, edge))
        .map(|edge| find(format!("{} may not depend on {}", package.name, edge.name)))
        .collect()
}

fn allows(room: &Room, edge: &Dependency) -> bool {
    let name = edge.name.as_str();
    let in_tests = edge.kind.as_deref() == Some("dev");
    room.below.contains(&name) || (in_tests && room.tested_on.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(package: &str, edges: &[(&str, Option<&str>)]) -> usize {
        let dependencies = edges
            .iter()
            .map(|&(name, kind)| Dependency {
                name: name.to_owned(),
                kind: kind.map(str::to_owned),
                path: (name != "libc").then(|| name.into()),
            })
            .collect();
        let package = Package {
            name: package.to_owned(),
            description: None,
            manifest_path: "Cargo.toml".into(),
            dependencies,
            targets: Vec::new(),
        };
        check_package(Path::new(""), &package).len()
    }

    #[test]
    fn edges_point_down() {
        assert_eq!(found(SYNC, &[(PLATFORM, None), ("libc", None)]), 0);
        assert_eq!(found(PLATFORM, &[(SYNC, None)]), 1);
        assert_eq!(found(LINUX, &[(SYNC, None), (SYNC, Some("dev"))]), 2);
        assert_eq!(found("xtask", &[(PLATFORM, None)]), 1);
    }

    #[test]
    fn an_algorithm_meets_a_back_end_in_tests_only() {
        assert_eq!(found(SYNC, &[(CHECK, Some("dev"))]), 0);
        assert_eq!(found(SYNC, &[(CHECK, None), (SIM, Some("build"))]), 2);
        assert_eq!(found(SYNC, &[(MODELS, Some("dev"))]), 1);
        assert_eq!(found(MODELS, &[(SYNC, None), (CHECK, None), (SIM, None)]), 1);
    }

    #[test]
    fn a_new_crate_needs_a_room() {
        assert_eq!(found("antiphon-attic", &[]), 1);
    }
}
