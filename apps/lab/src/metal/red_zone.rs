//! What no function of an image may do: keep something below its stack pointer, where an interrupt
//! would write; or turn the direction in which memory is copied, which the handlers rely on.
//!
//! The image's own code is compiled to do neither; code of the target's library is compiled
//! already. So the linked image is searched, as the disassembler shows it.

use std::path::Path;
use std::process::Command;

use antiphon_report::failure::Failure;

/// How many places are named.
const EXAMPLES: usize = 3;

/// Searches the image at `path`.
///
/// # Errors
///
/// The places; or that there is no disassembler.
pub fn check(path: &Path) -> Result<(), Failure> {
    let mut objdump = Command::new("objdump");
    let shown =
        objdump.args(["--disassemble", "--no-show-raw-insn", "-M", "att"]).arg(path).output();
    let shown = shown.map_err(|error| {
        Failure::missing(format!("objdump searches the image: apt-get install binutils ({error})"))
    })?;
    if !shown.status.success() {
        return Err(Failure::measured("objdump can't read the image"));
    }
    let places = places(&String::from_utf8_lossy(&shown.stdout));
    if places.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = places.iter().take(EXAMPLES).map(String::as_str).collect();
    Err(Failure::measured(format!(
        "{} instructions of the image write below the stack pointer, or turn the direction flag: \
         {}; compile what they are of with -Cno-redzone=yes",
        places.len(),
        named.join("; ")
    )))
}

/// The instructions, each with its function.
fn places(shown: &str) -> Vec<String> {
    let mut function = "";
    let mut places = Vec::new();
    for line in shown.lines() {
        if let Some(name) = line.strip_suffix(">:") {
            function = name.split_once('<').map_or(name, |(_, name)| name);
        } else if let Some((_, instruction)) = line.split_once(":\t")
            && is_forbidden(instruction)
        {
            places.push(format!("{} in {function}", instruction.trim()));
        }
    }
    places
}

fn is_forbidden(instruction: &str) -> bool {
    // `lea` only counts.
    let reads = !instruction.starts_with("lea");
    let below = |at: usize| {
        // The displacement before it is negative.
        let before = &instruction[..at];
        let digits =
            before.trim_end_matches(|letter: char| letter.is_ascii_hexdigit() || letter == 'x');
        digits.ends_with('-')
    };
    reads && instruction.match_indices("(%rsp").any(|(at, _)| below(at))
        || instruction.trim() == "std"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_below_the_stack_pointer_are_found() {
        let shown = "0000000000100000 <one>:\n  100000:\tmov    %rax,-0x8(%rsp)\n  100004:\tlea    \
                     -0x8(%rsp),%rax\n0000000000100010 <other>:\n  100010:\tmov    \
                     0x8(%rsp),%rax\n  100014:\tmovaps %xmm0,-0x78(%rsp,%rcx,1)\n  100018:\tstd\n";
        let found = places(shown);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("in one"));
        assert!(found[2].ends_with("in other"));
    }
}
