//! The symbols that the library needs from the C library, and those that it exports.

#[path = "../../preload/tests/support/elf.rs"]
mod elf;
mod support;

use std::collections::BTreeSet;

/// The oldest C library that the library loads with.
const OLDEST: (u32, u32) = (2, 34);

fn symbols() -> elf::Symbols {
    let file = std::fs::read(support::library()).unwrap_or_default();
    elf::read(&file).expect("an ELF file")
}

/// The numbers of `GLIBC_x.y` and `GLIBC_x.y.z`.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("GLIBC_")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[test]
fn needs_nothing_newer_than_the_oldest_c_library() {
    let symbols = symbols().symbols;
    let needed: Vec<_> = symbols.iter().filter(|it| !it.defined && !it.weak).collect();
    assert!(needed.iter().filter(|symbol| symbol.version.is_some()).count() > 10);
    let version = |symbol: &&elf::Symbol| symbol.version.as_deref().and_then(number);
    let newer: Vec<_> =
        needed.into_iter().filter(|it| version(it).is_some_and(|it| it > OLDEST)).collect();
    assert!(newer.is_empty(), "{newer:?}");
}

#[test]
fn offers_the_functions_in_which_loops_wait_and_nothing_else() {
    let symbols = symbols();
    assert!(!symbols.defines_versions, "an unversioned symbol satisfies every version");
    let offered: BTreeSet<_> =
        symbols.symbols.iter().filter(|it| it.defined).map(|it| it.name.as_str()).collect();
    let wanted = [
        "__poll",
        "__poll_chk",
        "__ppoll_chk",
        "__select",
        "antiphon_coop_release",
        "epoll_pwait",
        "epoll_pwait2",
        "epoll_wait",
        "poll",
        "ppoll",
        "pselect",
        "select",
    ];
    assert_eq!(offered, BTreeSet::from(wanted));
}
