//! The light form: in use where it is requested and available, by the threads that may use it, and
//! by no others.

mod support;

use antiphon_record::{Recording, Scope, Snapshot};
use support::{compile, plain, preloaded, scratch, skipped, succeeds};

const ASKED: (&str, &str) = ("ANTIPHON_LOCK", "shfl-mutex+light");

/// Returns whether the machine and the C library allow the light form, without using our code.
fn can_be_had() -> bool {
    const NEEDED: libc::c_long = 1 << 7 | 1 << 8;
    // SAFETY: only queries the available fences.
    let fences = unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) };
    // SAFETY: a name that ends in zero.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    // SAFETY: null, or the C library's constant.
    let registered = unsafe { size.cast::<u32>().as_ref() }.is_some_and(|&size| size != 0);
    cfg!(target_arch = "x86_64") && registered && fences & NEEDED == NEEDED
}

/// The expected form of unlocks where the light form was asked for.
fn expected() -> &'static str {
    if can_be_had() {
        return "light";
    }
    skipped("the light form can't be had here; its tests see the exchange");
    "exchange"
}

/// Runs `light.c` under a recording and reads it.
fn recorded(name: &str, arguments: [&str; 2], environment: &[(&str, &str)]) -> Snapshot {
    let directory = scratch(name);
    let program = compile(&directory, "light.c");
    let path = directory.join("recording");
    let recording = match Recording::create(&path, Scope::Contended) {
        Ok(recording) => recording,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let mut command = preloaded(&program);
    command.args(arguments).env("ANTIPHON_RECORD", &path).envs(environment.iter().copied());
    let output = succeeds(&mut command);
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    assert!(std::fs::remove_dir_all(&directory).is_ok());
    match recording.read() {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{error}"),
    }
}

fn forms(snapshot: &Snapshot) -> Vec<bool> {
    snapshot.processes.iter().map(|process| process.light).collect()
}

#[test]
fn the_c_library_never_unlocks_lightly() {
    let directory = scratch("light-plain");
    let program = compile(&directory, "light.c");
    succeeds(plain(&program).args(["exchange", "who"]));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn nobody_unlocks_lightly_who_was_not_asked_to() {
    for value in ["", "shfl-mutex", "shfl-mutex+lightly"] {
        let snapshot = recorded("light-not", ["exchange", "who"], &[(ASKED.0, value)]);
        assert_eq!(forms(&snapshot), [false]);
    }
}

#[test]
fn threads_that_the_kernel_knows_unlock_lightly_and_no_others() {
    let expected = expected();
    let snapshot = recorded("light-who", [expected, "who"], &[ASKED]);
    assert_eq!(forms(&snapshot), [expected == "light"]);
}

#[test]
fn without_rseq_the_exchange_form_stays_and_is_told() {
    let off = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    assert_eq!(forms(&recorded("light-off", ["exchange", "who"], &[ASKED, off])), [false]);
}

#[test]
fn a_filter_from_the_start_leaves_the_exchange_form() {
    // Two programs: the one that installs the filter, and the same program under the filter.
    let mut forms = forms(&recorded("light-early", ["exchange", "filtered"], &[ASKED]));
    forms.sort_unstable();
    assert_eq!(forms, [false, expected() == "light"]);
}

#[test]
fn a_filter_that_comes_later_loses_no_wake() {
    for case in ["contend", "filter"] {
        recorded("light-late", [expected(), case], &[ASKED]);
    }
}

#[test]
fn a_debugger_that_steps_through_it_gets_somewhere() {
    recorded("light-step", [expected(), "step"], &[ASKED]);
}
