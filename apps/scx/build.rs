//! Compiles the kernel's part, if the programs are built.

use std::env::var_os;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "src/shared.rs"]
#[allow(dead_code, reason = "only its text for C is used here")]
mod shared;

/// The compilers that are tried, the newest known one first.
const COMPILERS: [&str; 3] = ["clang-19", "clang", "clang-18"];

fn main() -> Result<(), Box<dyn Error>> {
    for file in ["bpf", "src/shared.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    if var_os("CARGO_FEATURE_PROGRAM").is_none() {
        return Ok(());
    }
    let out = PathBuf::from(var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    fs::write(out.join("hints.h"), antiphon_hints::c_header())?;
    fs::write(out.join("shared.h"), shared::c_header())?;
    let libbpf = var_os("DEP_BPF_INCLUDE").ok_or("libbpf-sys has told no folder of headers")?;
    compile(&out, Path::new(&libbpf))
}

fn compile(out: &Path, libbpf: &Path) -> Result<(), Box<dyn Error>> {
    let is_there = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let compiler = COMPILERS.iter().find(is_there).ok_or(
        "no clang, which compiles the scheduler's part in the kernel: install clang-19 (with \
         libelf-dev, zlib1g-dev and pkg-config)",
    )?;
    let done = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wno-unused-parameter", "-c", "bpf/antiphon.bpf.c", "-o"])
        .arg(out.join("antiphon.bpf.o"))
        .args([OsStr::new("-I"), out.as_os_str(), OsStr::new("-isystem"), libbpf.as_os_str()])
        .status()?;
    if done.success() { Ok(()) } else { Err(format!("{compiler} failed").into()) }
}
