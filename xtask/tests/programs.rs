//! `cargo xtask programs`: what a command does to the programs that it runs is noticed.
//!
//! The command is a stand-in: a script that runs its program, does something to it, and reports.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("antiphon-battery-test-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// The battery of one case, with a command that does `deed` behind its program: the line on the
    /// case, and whether the battery has passed.
    fn battery(&self, case: &str, deed: &str) -> (String, bool) {
        let [command, list] = ["command", "list.toml"].map(|name| self.0.join(name));
        let script = format!(
            "#!/bin/sh\n\
             child=\n\
             while [ \"$1\" != -- ]; do [ \"$1\" = --report ] && report=$2; shift; done; shift\n\
             told=; trap 'told=1; [ -z $child ] || kill -TERM $child' TERM\n\
             \"$@\" & child=$!\n\
             [ -z $told ] || kill -TERM $child\n\
             wait $child; code=$?; [ $code -lt 129 ] || {{ wait $child; code=$?; }}\n\
             {deed}\n\
             echo report > \"$report\"; cat \"$report\" >&2\n\
             exit $code\n"
        );
        fs::write(&command, script).expect("a file");
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("rights");
        fs::write(&list, format!("[[case]]\nname = \"case\"\n{case}\n")).expect("a list");
        let done = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["programs", "--mode", "exchange", "--list"])
            .arg(list)
            .arg("--antiphon")
            .arg(command)
            .output()
            .expect("xtask starts");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let line = said.lines().next().unwrap_or_default().to_owned();
        let code = done.status.code();
        assert!(matches!(code, Some(0 | 1)), "{said}{}", String::from_utf8_lossy(&done.stderr));
        (line, code == Some(0))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind in the temporary directory fails no test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PROGRAM: &str = r#"run = "echo out; echo err >&2; echo x > file; exit 3""#;

/// A server that answers as long as a file is there.
const SERVER: &str = r#"
run = """trap 'rm -f answer pid; exit 4' TERM
echo $$ > pid; echo yes > answer; while :; do sleep 0.02; done"""
ready = "test -e answer"
ask = "cat answer"
pid_file = "pid"
"#;

#[test]
fn what_is_done_to_a_program_is_noticed() {
    let folder = Folder::new();
    assert_eq!(folder.battery(PROGRAM, ":"), ("passed: case exchange".to_owned(), true));
    for (deed, what) in [
        ("code=4", "exit differs at byte 5: \"code 3\" without, \"code 4\" with"),
        ("kill -9 $$", "exit differs at byte 5: \"code 3\" without, \"code 137\" with"),
        ("echo more", "stdout differs"),
        ("echo more >&2", "stderr differs"),
        ("rm file", "file file is missing"),
        ("echo more > file", "file file differs"),
        ("echo more > another", "file another exists only with antiphon"),
        ("sleep 600 > /dev/null 2>&1 &", "what still ran differs"),
        ("exit 101", "exit differs"),
        ("exit 3", "a lost report exists only with antiphon"),
    ] {
        let (line, passed) = folder.battery(PROGRAM, deed);
        assert!(line.starts_with("failed: case exchange: ") && line.contains(what), "{line}");
        assert!(!passed, "{line}");
    }
    let (line, passed) = folder.battery("run = \"date +%N\"", ":");
    assert!(line.starts_with("skipped: case: differs from itself: stdout"), "{line}");
    assert!(passed);
    let (line, passed) = folder.battery("run = \"no-such-program-here\"", ":");
    assert!(line.starts_with("skipped: case: no no-such-program-here on this machine"), "{line}");
    assert!(passed);
    let around = r#"around = "ulimit -n 50; exec \"$@\""
run = "ulimit -n; true""#;
    assert_eq!(folder.battery(around, ":").0, "passed: case exchange");

    assert_eq!(folder.battery(SERVER, ":"), ("passed: case exchange".to_owned(), true));
    for (deed, what) in [
        ("code=5", "exit after TERM differs at byte 5: \"code 4\" without, \"code 5\" with"),
        ("echo 1 > pid", "PID file after TERM differs"),
        ("touch answer", "answers after TERM differs"),
    ] {
        let (line, passed) = folder.battery(SERVER, deed);
        assert!(line.contains(what) && !passed, "{line}");
    }
}
