//! Tests of the library as a C program uses it: installed under a prefix, found by pkg-config.

#[allow(dead_code, reason = "the preload's tests need more of it")]
#[path = "../../preload/tests/support/elf.rs"]
mod elf;
#[path = "capi/examples.rs"]
mod examples;
#[path = "capi/headers.rs"]
mod headers;
#[path = "capi/install.rs"]
mod install;
#[path = "capi/programs.rs"]
mod programs;
#[path = "capi/support.rs"]
mod support;
#[path = "capi/symbols.rs"]
mod symbols;
