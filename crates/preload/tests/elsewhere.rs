//! Programs that are executed where the library can't be found are started without it.

mod support;

use std::path::Path;
use std::process::Command;

use support::{compile, library, plain, run, scratch, skipped, succeeds};

#[test]
fn in_another_root_directory_every_call_leaves_the_library_out() {
    let directory = scratch("elsewhere");
    let program = compile(&directory, "elsewhere.c");
    let root = directory.join("root");
    assert!(std::fs::create_dir_all(&root).is_ok());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/elsewhere.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-static", "-DSHOW", "-o"]).arg(root.join("show")).arg(source);
    succeeds(&mut compiler);

    let mut command = plain(&program);
    let ours = library().display().to_string();
    command.arg(&root).env_clear().env("LD_PRELOAD", &ours).env("KEPT", "yes");
    let output = run(&mut command);
    if output.status.code() == Some(77) {
        return skipped("chroot is not allowed here");
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the loader has said something");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = shown.lines().collect();
    // In the old root directory.
    assert!(lines[0].contains(&format!("LD_PRELOAD={ours}")), "{shown}");
    let inherited = |count| format!("{count} last KEPT=yes PATH=/");
    let own = |count| format!("{count} last A=1 LD_PRELOAD=first.so:second.so B=2");
    let expected = [
        own(2), // execve
        inherited(2),
        inherited(8), // execl
        own(8),
        inherited(2), // execvp
        inherited(2),
        own(2), // execvpe
        own(2),
        own(2), // execveat
        own(2),
        own(2),
    ];
    assert_eq!(lines[1..], expected);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
