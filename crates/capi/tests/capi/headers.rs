//! The headers in every dialect that they are for, alone in a file, without a warning.

use std::process::Command;

use crate::support::{here, succeeds};

fn check(compiler: &str, dialects: &[&str], language: &str, header: &str) {
    for dialect in dialects {
        let mut command = Command::new(compiler);
        command.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]);
        command.arg(format!("-std={dialect}")).arg("-x").arg(language);
        succeeds(command.arg(here().join("include").join(header)));
    }
}

#[test]
fn the_c_header_is_c_and_cpp() {
    check("gcc", &["c99", "gnu99", "c11", "c17", "c2x"], "c", "antiphon.h");
    check("g++", &["c++11", "c++17", "c++20"], "c++", "antiphon.h");
}

#[test]
fn the_cpp_header_is_cpp_17_and_later() {
    check("g++", &["c++17", "gnu++17", "c++20", "c++2b"], "c++", "antiphon.hpp");
    let mut without = Command::new("g++");
    without.args(["-std=c++17", "-fno-exceptions", "-fsyntax-only", "-Werror", "-x", "c++"]);
    succeeds(without.arg(here().join("include/antiphon.hpp")));
    let mut old = Command::new("g++");
    old.args(["-std=c++14", "-fsyntax-only", "-x", "c++"]);
    let output = old.arg(here().join("include/antiphon.hpp")).output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("needs C++17"), "{said}");
}
