//! The symbols that the library needs from the C library, and those that it exports.

#[path = "support/elf.rs"]
mod elf;
mod support;

use std::process::Command;

use elf::Symbols;

/// The oldest C library that the library must load with.
const OLDEST: (u32, u32) = (2, 31);

fn symbols() -> Symbols {
    let file = std::fs::read(support::library()).unwrap_or_default();
    match elf::read(&file) {
        Some(symbols) => symbols,
        None => panic!("no ELF file: {}", support::library().display()),
    }
}

/// The numbers of `GLIBC_x.y` and `GLIBC_x.y.z`.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("GLIBC_")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[test]
fn needs_nothing_newer_than_the_oldest_c_library() {
    let symbols = symbols().symbols;
    let needed: Vec<_> = symbols.iter().filter(|symbol| !symbol.defined).collect();
    let versioned = needed.iter().filter(|symbol| symbol.version.is_some()).count();
    assert!(versioned > 10, "the versions were not found: {needed:?}");
    let newer: Vec<_> = needed
        .iter()
        .filter(|symbol| !symbol.weak)
        .filter(|symbol| symbol.version.as_deref().and_then(number).is_some_and(|v| v > OLDEST))
        .collect();
    assert!(newer.is_empty(), "{newer:?}");
}

#[test]
fn offers_every_function_in_every_version() {
    let symbols = symbols();
    assert!(!symbols.defines_versions, "an unversioned symbol satisfies every version");
    let offered = |name: &str| {
        symbols.symbols.iter().any(|symbol| symbol.defined && !symbol.weak && symbol.name == name)
    };
    let mutex = ["init", "destroy", "lock", "trylock", "timedlock", "clocklock", "unlock"];
    let internal = ["init", "destroy", "lock", "trylock", "unlock"];
    let cond = ["init", "destroy", "wait", "timedwait", "clockwait", "signal", "broadcast"];
    let spin = ["init", "destroy", "lock", "trylock", "unlock"];
    let rwlock = ["init", "destroy", "rdlock", "tryrdlock", "wrlock", "trywrlock", "unlock"];
    let timed = ["timedrdlock", "clockrdlock", "timedwrlock", "clockwrlock"];
    let priorities =
        ["pthread_setschedparam", "pthread_setschedprio", "sched_setscheduler", "sched_setparam"];
    let names = (mutex.iter().map(|name| format!("pthread_mutex_{name}")))
        .chain(internal.iter().map(|name| format!("__pthread_mutex_{name}")))
        .chain(rwlock.iter().chain(&timed).map(|name| format!("pthread_rwlock_{name}")))
        .chain(rwlock.iter().map(|name| format!("__pthread_rwlock_{name}")))
        .chain(cond.iter().map(|name| format!("pthread_cond_{name}")))
        .chain(spin.iter().map(|name| format!("pthread_spin_{name}")))
        .chain(["syscall", "prctl"].map(str::to_owned))
        // The functions that look others up, and the one that a sanitizer calls.
        .chain(["dlsym", "dlvsym", "__asan_default_options"].map(str::to_owned))
        .chain(priorities.map(str::to_owned));
    let missing: Vec<String> = names.filter(|name| !offered(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn leaves_the_rest_to_the_c_library() {
    let symbols = symbols().symbols;
    let offered = symbols.iter().filter(|symbol| symbol.defined && symbol.name.contains("pthread"));
    let strange: Vec<_> = offered
        .filter(|symbol| {
            let ours = ["_mutex_", "_rwlock_", "_cond_", "_spin_"];
            // These create and join threads as usual and record that as events, or set priorities,
            // which is noted too.
            let noted =
                ["pthread_create", "pthread_join", "pthread_setschedparam", "pthread_setschedprio"];
            !ours.iter().any(|part| symbol.name.contains(part))
                && !noted.contains(&symbol.name.as_str())
        })
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
}

/// A cancellation in a linkage table unwinds from there, and LLD describes none: the C library then
/// assumes the end of the stack, and runs no cleanup of ours.
#[test]
fn what_a_cancellable_sleep_calls_is_called_directly() {
    let mut readelf = Command::new("readelf");
    let output = readelf.args(["--relocs", "--wide"]).arg(support::library()).output();
    let output = output.expect("readelf, of the package binutils");
    let relocations = String::from_utf8(output.stdout).expect("names in ASCII");
    let name = "pthread_setcanceltype";
    let kinds: Vec<_> = relocations
        .lines()
        .filter(|line| line.contains(&format!(" {name}@")))
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert!(!kinds.is_empty(), "{name} is not called at all");
    assert!(kinds.iter().all(|kind| kind.contains("GLOB_DAT")), "{name}: {kinds:?}");
    // The sleep itself is an instruction, not a call of `syscall`: this library's own has no unwind
    // information.
    assert!(!relocations.lines().any(|line| line.contains(" syscall@")));
}
