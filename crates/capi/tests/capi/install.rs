//! Tests `cargo xtask install`, as packagers call it.

use std::process::{Command, Output};

use crate::support::{scratch, succeeds, xtask_install};

fn install(arguments: &[&str]) -> Output {
    xtask_install().args(arguments).output().expect("cargo runs")
}

#[test]
fn a_package_is_staged_and_names_the_place_that_it_is_for() {
    let (stage, prefix) = (scratch("stage"), scratch("named"));
    let named = prefix.display();
    let install = || {
        let mut command = xtask_install();
        succeeds(command.arg("--prefix").arg(&prefix).arg("--destdir").arg(&stage));
    };
    install();
    assert_eq!(std::fs::read_dir(&prefix).expect("a directory").count(), 0);
    let lib = stage.join(prefix.strip_prefix("/").expect("absolute")).join("lib");
    let config = lib.join("pkgconfig");
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", &config).args(["--cflags", "--libs", "antiphon"]);
    let flags = String::from_utf8_lossy(&succeeds(&mut command).stdout).into_owned();
    assert_eq!(flags.trim(), format!("-I{named}/include -L{named}/lib -lantiphon"));
    // Installs once more, over the existing files.
    install();
    let left = std::fs::read_dir(lib).expect("a directory");
    let names: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn a_wrong_call_is_told_what_would_be_right() {
    let output = install(&["--prefix", "here"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("--prefix here is not absolute"), "{said}");

    let file = scratch("file").join("a-file");
    std::fs::write(&file, "").expect("it can be written");
    let output = install(&["--prefix", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let place = file.join("include").display().to_string();
    assert!(said.lines().count() == 1 && said.contains(&place), "{said}");
}
