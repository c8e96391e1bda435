//! The parts of a kernel's file: the compressed kernel in it, and that one's sections.
//!
//! The head of the file is as `Documentation/arch/x86/boot.rst` of the kernel has it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// Where the head says how many sectors of 512 bytes precede the kernel, besides the first one.
const SECTORS: usize = 0x1f1;
/// Where it says where the compressed kernel is, from there.
const OFFSET: usize = 0x248;
/// And how long it is.
const LENGTH: usize = 0x24c;
/// The length of the decompressed kernel, behind the compressed one.
const TRAILER: usize = 4;

/// Returns the kernel in a kernel's file, decompressed by `zstd`.
///
/// # Errors
///
/// If the file is of another kind.
pub fn decompress(folder: &Path, file: &[u8]) -> Result<Vec<u8>, Failure> {
    let packed = packed(file).ok_or("not a kernel's file for x86")?;
    let path = folder.join("kernel.zst");
    fs::write(&path, packed)?;
    let output = Command::new("zstd").args(["-d", "-c", "-q"]).arg(&path).output()?;
    fs::remove_file(&path)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("zstd: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

fn packed(file: &[u8]) -> Option<&[u8]> {
    let word = |at| Some(number(file, at, 4)? as usize);
    let begin = (usize::from(*file.get(SECTORS)?) + 1) * 512 + word(OFFSET)?;
    file.get(begin..begin + word(LENGTH)?.checked_sub(TRAILER)?)
}

/// Returns a section of an ELF file of 64 bits.
pub fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let word = |at: usize, bytes| number(file, at, bytes).map(|value| value as usize);
    let (table, size) = (word(0x28, 8)?, word(0x3a, 2)?);
    let (count, names) = (word(0x3c, 2)?, word(0x3e, 2)?);
    let content = |index: usize| {
        let head = table + index * size;
        let begin = word(head + 0x18, 8)?;
        Some((word(head, 4)?, file.get(begin..begin.checked_add(word(head + 0x20, 8)?)?)?))
    };
    let (_, names) = content(names)?;
    let is_it = |at: usize| {
        let rest = names.get(at..)?;
        Some(rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0))
    };
    let found = (0..count).filter_map(content).find(|(at, _)| is_it(*at) == Some(true));
    found.map(|(_, content)| content)
}

fn number(file: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = file.get(at..at.checked_add(bytes)?)?;
    Some(part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_this_program_are_found_by_name() {
        let file = fs::read(std::env::current_exe().unwrap()).unwrap();
        let names = section(&file, ".shstrtab").unwrap();
        assert!(names.windows(6).any(|name| name == b".text\0"));
        assert!(section(&file, ".tex").is_none() && section(&file[..64], ".text").is_none());
    }

    #[test]
    fn the_packed_kernel_is_where_the_head_says() {
        let mut file = vec![0_u8; 2_048];
        file[SECTORS] = 1;
        file[OFFSET] = 16;
        file[LENGTH] = 7;
        file[1_040..1_043].copy_from_slice(b"abc");
        assert_eq!(packed(&file), Some(&b"abc"[..]));
        assert!(packed(&file[..1_040]).is_none() && packed(&[]).is_none());
    }
}
