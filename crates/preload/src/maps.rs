//! Reads `/proc/self/maps`: the file that is mapped at an address, and the offset in it.
//!
//! This is done once for each call site, when it is new, so that a recording can be read without
//! the process, which may have been killed or have closed the library. What identifies the file
//! among others of its path is read once for each file: by the time of a report, an upgrade may
//! have put another file there.

use core::ffi::CStr;

use antiphon_record::{BuildId, FileId, Writer};

use crate::pieces::Pieces;
use crate::sys;

/// A position in a mapped file.
pub(crate) struct Place<'a> {
    /// The path as the kernel shows it, followed by ` (deleted)` if the file has no name any more.
    pub(crate) path: &'a [u8],
    pub(crate) offset: u64,
    /// The file's device and inode.
    file: FileId,
    /// The address at which the file's beginning is mapped, if the loader has mapped it.
    head: Option<usize>,
}

/// Calls `found` with the place of `address`, if a file is mapped there.
pub(crate) fn locate(address: usize, found: impl FnOnce(&Place<'_>)) {
    at(address, |mapping, head| {
        if let Some(place) = mapping.place(address, head) {
            found(&place);
        }
    });
}

/// Records the place of `address` for the new `site` of `writer`.
pub(crate) fn place(writer: Writer, site: u32, address: usize) {
    locate(address, |place| {
        let about = |file| about(file, place.path, place.head);
        writer.place(site, place.path, place.offset, place.file, about);
    });
}

/// Records the places of these addresses, each of a new site of `writer`, in one pass over the
/// mappings. Not inlined, so that its buffer is on the stack only during the call.
#[inline(never)]
pub(crate) fn place_all(writer: Writer, fresh: &[(u32, usize)]) {
    if fresh.is_empty() {
        return;
    }
    each(|mapping, head| {
        for &(site, address) in fresh {
            if (mapping.begin..mapping.end).contains(&address)
                && let Some(place) = mapping.place(address, head)
            {
                let about = |file| about(file, place.path, place.head);
                writer.place(site, place.path, place.offset, place.file, about);
            }
        }
        None::<()>
    });
}

/// Returns whether other processes may share the memory at `address`.
pub(crate) fn is_shared(address: usize) -> bool {
    at(address, |mapping, _| mapping.shared).unwrap_or(false)
}

/// Calls `found` with the mapping at `address`, and the address at or below it where the beginning
/// of its file is mapped.
fn at<R>(address: usize, found: impl FnOnce(&Mapping<'_>, Option<usize>) -> R) -> Option<R> {
    let mut found = Some(found);
    each(|mapping, head| {
        let inside = (mapping.begin..mapping.end).contains(&address);
        inside.then(|| found.take()).flatten().map(|found| found(mapping, head))
    })
}

/// Calls `seen` with each mapping, and the address at or below it where the beginning of its file
/// is mapped, until `seen` returns a value.
fn each<R>(mut seen: impl FnMut(&Mapping<'_>, Option<usize>) -> Option<R>) -> Option<R> {
    let mut lines = Pieces::of(c"/proc/self/maps", b'\n')?;
    let mut head = None;
    while let Some(line) = lines.next() {
        let Some(mapping) = Mapping::parse(line) else { continue };
        if mapping.offset == 0 && mapping.file.inode != 0 {
            head = Some((mapping.begin, mapping.file));
        }
        let begin = head.filter(|&(_, of)| of == mapping.file).map(|(begin, _)| begin);
        if let Some(found) = seen(&mapping, begin) {
            return Some(found);
        }
    }
    None
}

/// Adds to `file` its build id or, without one, its modification time.
fn about(file: FileId, path: &[u8], head: Option<usize>) -> FileId {
    if let Some(build) = head.and_then(build) {
        return FileId { build, ..file };
    }
    let mut name = [0; NAME];
    let room = name.len() - 1;
    name[..path.len().min(room)].copy_from_slice(&path[..path.len().min(room)]);
    let status = CStr::from_bytes_until_nul(&name).ok().and_then(sys::number);
    // If the inode differs, the path names another file by now.
    let modified_ns = status.filter(|&(inode, _)| inode == file.inode).map_or(0, |(_, at)| at);
    FileId { modified_ns, ..file }
}

/// Most bytes of a path; the file of a longer path is not looked at.
const NAME: usize = 512;

/// The build id in the ELF file whose beginning is mapped at `head`.
fn build(head: usize) -> Option<BuildId> {
    // The file header: the identification, and where the program headers are. ELF-64, as this
    // library is: a process has no others.
    let mut header = [0; 64];
    read(head, &mut header)?;
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let headers = usize::try_from(word(&header, 32)?).ok()?;
    let (size, count) = (usize::from(half(54)), usize::from(half(56)));
    if !header.starts_with(b"\x7fELF\x02") || size < HEADER_BYTES {
        return None;
    }
    // The loader chooses the address of a shared object's beginning.
    let mut begins_at = None;
    let mut notes = None;
    for index in 0..count.min(MOST_HEADERS) {
        let mut header = [0; HEADER_BYTES];
        read(head.checked_add(headers)?.checked_add(index * size)?, &mut header)?;
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let [offset, address, bytes] = [8, 16, 32].map(|at| word(&header, at));
        match kind {
            PT_LOAD if offset == Some(0) => begins_at = address,
            PT_NOTE => {
                let found = notes_at(head, begins_at?, address?, bytes?);
                notes = notes.or(found);
            }
            _ => {}
        }
    }
    notes
}

/// The build id among `bytes` bytes of notes. The program headers give them the address `address`,
/// and the file's beginning `begins_at`; that is mapped at `head`.
fn notes_at(head: usize, begins_at: u64, address: u64, bytes: u64) -> Option<BuildId> {
    let mut notes = [0; MOST_NOTES];
    let notes = notes.get_mut(..usize::try_from(bytes).ok()?.min(MOST_NOTES))?;
    let at = usize::try_from(address.checked_sub(begins_at)?).ok()?;
    read(head.checked_add(at)?, notes)?;
    BuildId::in_notes(notes)
}

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Bytes of a program header.
const HEADER_BYTES: usize = 56;
/// Most program headers that are read: linkers write a dozen.
const MOST_HEADERS: usize = 64;
/// Most bytes of notes that are read: a build id takes 36, and the notes before it about as many.
const MOST_NOTES: usize = 512;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().map(u64::from_ne_bytes).ok()
}

/// Fills `into` from an address of this process by a system call, because the mapping may be gone
/// meanwhile.
fn read(at: usize, into: &mut [u8]) -> Option<()> {
    (sys::read_own([(at, into.len()), (at, 0)], into)? == into.len()).then_some(())
}

/// A line of `/proc/self/maps`: `begin-end rights offset device inode path`.
struct Mapping<'a> {
    begin: usize,
    end: usize,
    shared: bool,
    offset: u64,
    file: FileId,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// The place of an address in the mapping, if that is of a file.
    fn place(&self, address: usize, head: Option<usize>) -> Option<Place<'a>> {
        let offset = self.offset + (address - self.begin) as u64;
        let is_file = self.path.first() == Some(&b'/');
        is_file.then_some(Place { path: self.path, offset, file: self.file, head })
    }

    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
        let begin = hexadecimal(range.next()?)?;
        let end = hexadecimal(range.next()?)?;
        let shared = fields.next()?.ends_with(b"s");
        let offset = hexadecimal(fields.next()?)? as u64;
        let mut device = fields.next()?.splitn(2, |&byte| byte == b':');
        let (major, minor) = (hexadecimal(device.next()?)?, hexadecimal(device.next()?)?);
        let inode = core::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let device = libc::makedev(major as u32, minor as u32);
        let file = FileId { device, inode, ..FileId::default() };
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        Some(Self { begin, end, shared, offset, file, path })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |number, &digit| {
        let digit = (digit as char).to_digit(16)?;
        number.checked_mul(16)?.checked_add(digit as usize)
    })
}
