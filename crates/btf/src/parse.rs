//! A reader of BTF: names, kinds and parameters, as the kernel's documentation defines them
//! (`Documentation/bpf/btf.rst`). All numbers are little-endian here.

use std::fmt;

/// A pointer.
pub const PTR: u8 = 2;
/// A structure.
pub const STRUCT: u8 = 4;
/// A function; its prototype is another type.
pub const FUNC: u8 = 12;
/// The parameters and the result of a function.
pub const FUNC_PROTO: u8 = 13;

/// Why bytes are not BTF: what is wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed BTF: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// A type.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    /// Its kind, by number.
    pub kind: u8,
    /// Its name, if it has one.
    pub name: &'a str,
    /// The type that it refers to, or its size.
    pub of: u32,
    rest: &'a [u8],
}

impl Type<'_> {
    /// The types of a prototype's parameters.
    pub fn parameters(&self) -> impl Iterator<Item = u32> {
        self.rest.chunks_exact(8).filter_map(|one| number(one, 4))
    }
}

/// All types of a kernel, by number from 1.
#[derive(Debug)]
pub struct Types<'a> {
    all: Vec<Type<'a>>,
}

impl<'a> Types<'a> {
    /// Reads all of them.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        const MAGIC: u32 = 0xeb9f;
        let head = |at| number(bytes, at).ok_or(Malformed("the header is cut off"));
        if head(0)? & 0xffff != MAGIC {
            return Err(Malformed("the magic number is missing"));
        }
        let begin = head(4)?;
        let part = |at: u32, length: u32| {
            let from = begin.checked_add(at)? as usize;
            bytes.get(from..from.checked_add(length as usize)?)
        };
        let types = part(head(8)?, head(12)?).ok_or(Malformed("the types are cut off"))?;
        let strings = part(head(16)?, head(20)?).ok_or(Malformed("the names are cut off"))?;
        let mut all = Vec::new();
        let mut left = types;
        while !left.is_empty() {
            let (one, behind) = read_one(left, strings)?;
            all.push(one);
            left = behind;
        }
        Ok(Self { all })
    }

    /// Returns all types.
    pub fn all(&self) -> impl Iterator<Item = &Type<'a>> {
        self.all.iter()
    }

    /// Returns the type of that number; `None` for no type (`void`).
    pub fn get(&self, number: u32) -> Option<&Type<'a>> {
        self.all.get((number as usize).checked_sub(1)?)
    }
}

/// Reads a type. Returns it, and what is behind it.
fn read_one<'a>(bytes: &'a [u8], strings: &'a [u8]) -> Result<(Type<'a>, &'a [u8]), Malformed> {
    let cut = Malformed("a type is cut off");
    let word = |at| number(bytes, at).ok_or(cut);
    let (name, info, of) = (word(0)?, word(4)?, word(8)?);
    let members = (info & 0xffff) as usize;
    let kind = (info >> 24 & 0x1f) as u8;
    // How many bytes follow, by the kind's number.
    let more = match kind {
        // An integer, a variable, a tag.
        1 | 14 | 17 => 4,
        // An array.
        3 => 12,
        // Structures, unions, sections, enumerations of 64 bits.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumerations, prototypes.
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return Err(Malformed("a type of an unknown kind")),
    };
    let rest = bytes.get(12..12 + more).ok_or(cut)?;
    let name = text(strings, name).ok_or(Malformed("a name is cut off"))?;
    Ok((Type { kind, name, of, rest }, &bytes[12 + more..]))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(strings: &[u8], at: u32) -> Option<&str> {
    let from = strings.get(at as usize..)?;
    let end = from.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&from[..end]).ok()
}
