//! The dynamic symbols of a 64-bit little-endian ELF file, with their versions.

use std::collections::HashMap;

/// A dynamic symbol.
#[derive(Debug)]
pub struct Symbol {
    pub name: String,
    pub defined: bool,
    pub weak: bool,
    /// The version that the symbol needs.
    pub version: Option<String>,
}

/// A file's dynamic symbols.
pub struct Symbols {
    pub symbols: Vec<Symbol>,
    /// Whether the file defines versions of its own.
    pub defines_versions: bool,
}

const DYNSYM: u32 = 11;
const VERNEED: u32 = 0x6fff_fffe;
const VERDEF: u32 = 0x6fff_fffd;
const VERSYM: u32 = 0x6fff_ffff;

struct Section {
    kind: u32,
    offset: usize,
    size: usize,
    link: usize,
}

/// Reads the dynamic symbols; `None` if the file is truncated or not an ELF file.
pub fn read(file: &[u8]) -> Option<Symbols> {
    let sections = sections(file)?;
    let find = |kind| sections.iter().find(|section| section.kind == kind);
    let table = find(DYNSYM)?;
    let strings = sections.get(table.link)?.offset;
    let versions = find(VERNEED).map(|needed| needed_versions(file, needed, &sections));
    let versions = versions.unwrap_or_else(|| Some(HashMap::new()))?;
    let mut symbols = Vec::new();
    for index in 1..table.size / 24 {
        let at = table.offset + index * 24;
        let version = match find(VERSYM) {
            Some(numbers) => u16_at(file, numbers.offset + index * 2)? & 0x7fff,
            None => 0,
        };
        symbols.push(Symbol {
            name: string(file, strings + u32_at(file, at)? as usize)?,
            defined: u16_at(file, at + 6)? != 0,
            weak: file.get(at + 4)? >> 4 == 2,
            version: versions.get(&version).cloned(),
        });
    }
    Some(Symbols { symbols, defines_versions: find(VERDEF).is_some() })
}

fn sections(file: &[u8]) -> Option<Vec<Section>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, count) = (u64_at(file, 40)?, u16_at(file, 60)? as usize);
    let section = |index| {
        let at = table + index * 64;
        Some(Section {
            kind: u32_at(file, at + 4)?,
            offset: u64_at(file, at + 24)?,
            size: u64_at(file, at + 32)?,
            link: u32_at(file, at + 40)? as usize,
        })
    };
    (0..count).map(section).collect()
}

/// The names of needed versions by the number that symbols refer to them by.
fn needed_versions(
    file: &[u8],
    needed: &Section,
    sections: &[Section],
) -> Option<HashMap<u16, String>> {
    let strings = sections.get(needed.link)?.offset;
    let mut versions = HashMap::new();
    let mut from = needed.offset;
    loop {
        let mut at = from + u32_at(file, from + 8)? as usize;
        for _ in 0..u16_at(file, from + 2)? {
            let name = string(file, strings + u32_at(file, at + 8)? as usize)?;
            versions.insert(u16_at(file, at + 6)?, name);
            at += u32_at(file, at + 12)? as usize;
        }
        match u32_at(file, from + 12)? {
            0 => return Some(versions),
            next => from += next as usize,
        }
    }
}

fn string(file: &[u8], at: usize) -> Option<String> {
    let bytes = file.get(at..)?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*file.get(at..)?.first_chunk()?))
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?))
}

fn u64_at(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*file.get(at..)?.first_chunk()?)).ok()
}
