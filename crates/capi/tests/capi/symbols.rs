//! Tests the symbols that the library exports to programs, and those that it must not import.

use std::collections::BTreeSet;
use std::process::Command;

use crate::elf;
use crate::support::{headers, here, prefix, succeeds};

/// Returns the functions that the C headers declare.
fn declared() -> BTreeSet<String> {
    headers("h").iter().flat_map(|header| declared_in(header)).collect()
}

/// Returns the names before a parenthesis in declarations.
fn declared_in(header: &str) -> BTreeSet<String> {
    let file = here().join("include").join(header);
    let header = std::fs::read_to_string(file).expect("the header");
    let code: String = header
        .split("/*")
        .flat_map(|part| part.split_once("*/").map_or(Some(part), |(_, code)| Some(code)))
        .collect();
    code.split('(')
        .filter_map(|before| before.rsplit([' ', '*', '\n', '\t']).next())
        .filter(|name| name.starts_with("antiphon_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_shared_library_offers_what_the_headers_declare_and_nothing_else() {
    let file = std::fs::read(prefix().join("lib/libantiphon.so")).expect("the library");
    let symbols = elf::read(&file).expect("an ELF file").symbols;
    let offered: BTreeSet<_> =
        symbols.into_iter().filter(|symbol| symbol.defined).map(|symbol| symbol.name).collect();
    let declared = declared();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(offered, declared);
}

/// A panic aborts: code that would unwind into C is not even linked.
#[test]
fn nothing_is_raised() {
    let file = std::fs::read(prefix().join("lib/libantiphon.so")).expect("the library");
    let symbols = elf::read(&file).expect("an ELF file").symbols;
    let needed: Vec<_> = symbols.iter().filter(|symbol| !symbol.defined).collect();
    assert!(needed.iter().any(|symbol| symbol.name.starts_with("_Unwind_")), "{needed:?}");
    assert!(needed.iter().all(|symbol| symbol.name != "_Unwind_RaiseException"), "{needed:?}");
}

#[test]
fn the_archive_offers_the_same_and_no_name_of_the_c_library() {
    let archive = prefix().join("lib/libantiphon.a");
    let mut command = Command::new("nm");
    command.args(["--extern-only", "--defined-only", "--format=posix"]).arg(archive);
    let output = succeeds(&mut command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let offered: BTreeSet<_> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(name, _)| name).collect();
    let missing: Vec<_> = declared().into_iter().filter(|n| !offered.contains(&**n)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let theirs: Vec<_> = offered
        .iter()
        .filter(|name| name.starts_with("pthread_") || name.starts_with("__pthread_"))
        .collect();
    assert!(theirs.is_empty(), "{theirs:?}");
}

/// Programs are bound to the version of the ABI.
#[test]
fn the_shared_library_is_known_by_its_soname() {
    let library = prefix().join("lib/libantiphon.so");
    let output = succeeds(Command::new("readelf").arg("-d").arg(&library));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("soname: [libantiphon.so.0]"), "{text}");
    let link = std::fs::read_link(prefix().join("lib/libantiphon.so.0")).expect("a link");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(link.to_str(), Some(&*format!("libantiphon.so.{version}")));
}
