//! Compiles each header alone, in every supported dialect, without a warning.

use std::process::Command;

use crate::support::{headers, here, succeeds};

/// Compiles each header with that extension.
fn check(extension: &str, compiler: &str, dialects: &[&str], language: &str) {
    let headers = headers(extension);
    assert!(!headers.is_empty());
    for header in headers {
        for dialect in dialects {
            let mut command = Command::new(compiler);
            command.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-pedantic"]);
            command.args(["-Werror", &format!("-std={dialect}"), "-x", language]);
            succeeds(command.arg(here().join("include").join(&header)));
        }
    }
}

#[test]
fn the_c_headers_are_c_and_cpp() {
    check("h", "gcc", &["c99", "gnu99", "c11", "c17", "c2x"], "c");
    check("h", "g++", &["c++11", "c++17", "c++20"], "c++");
}

#[test]
fn the_cpp_headers_are_cpp_17_and_later() {
    check("hpp", "g++", &["c++17", "gnu++17", "c++20", "c++2b"], "c++");
    for header in headers("hpp") {
        let mut without = Command::new("g++");
        without.args(["-std=c++17", "-fno-exceptions", "-fsyntax-only", "-Werror", "-x", "c++"]);
        succeeds(without.arg(here().join("include").join(header)));
    }
    let mut old = Command::new("g++");
    old.args(["-std=c++14", "-fsyntax-only", "-x", "c++"]);
    let output = old.arg(here().join("include/antiphon.hpp")).output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("needs C++17"), "{said}");
}
