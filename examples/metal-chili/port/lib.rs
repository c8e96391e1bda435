//! chili, compiled with the `std` of this package's dependencies. The build script takes its files
//! from the registry's copy on this machine.

include!(concat!(env!("OUT_DIR"), "/chili.rs"));

/// Lines of chili's files, without tests' modules.
pub const PORTED_LINES: u32 = parsed(env!("PORTED_LINES"));
/// Lines among them that were changed.
pub const CHANGED_LINES: u32 = parsed(env!("CHANGED_LINES"));
/// Lines that were left out because an included file can't have them: attributes and documentation
/// of the whole crate.
pub const LEFT_OUT_LINES: u32 = parsed(env!("LEFT_OUT_LINES"));

const fn parsed(digits: &str) -> u32 {
    match u32::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("the build script writes numbers"),
    }
}
