//! Critical sections under unmodified programs: the library pretends to a machine that heeds them,
//! and a program checks how many its threads are in, after each call.

mod support;

use std::path::Path;

use antiphon_record::{Recording, Scope};
use support::{compile, plain, preloaded_into, pretending, scratch, succeeds};

/// In both forms of the lock, recorded or not; and where waiters have no nodes, and nap.
#[test]
fn as_many_sections_end_as_begin() {
    let directory = scratch("sections");
    let program = compile(&directory, "sections.c");
    succeeds(&mut plain(&program));
    let told = |program: &Path, lock: &str, recording: &Path| {
        let mut command = preloaded_into(pretending(), program);
        command.env("ANTIPHON_PRETEND", "16x2").env("ANTIPHON_SECTIONS", "1");
        command.env("ANTIPHON_LOCK", lock).env("ANTIPHON_RECORD", recording);
        command
    };
    for lock in ["", "shfl-mutex+light"] {
        succeeds(told(&program, lock, Path::new("")).arg("told"));
    }
    let recording = directory.join("recording");
    for scope in [Scope::Contended, Scope::Full] {
        assert!(Recording::create(&recording, scope).is_ok());
        succeeds(told(&program, "", &recording).arg("told"));
        assert!(std::fs::remove_file(&recording).is_ok());
    }
    let nodeless = compile(&directory, "nodeless.c");
    succeeds(told(&nodeless, "", Path::new("")).arg(&program).arg("told"));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
