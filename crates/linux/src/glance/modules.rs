//! The program and its libraries, from the loader's list: the location of their unwind tables.

use core::ffi::{c_int, c_void};
use core::slice;

/// A mapped file. It can't be unmapped while this value exists.
#[derive(Debug)]
pub struct Module<'a> {
    base: usize,
    headers: &'a [libc::Elf64_Phdr],
}

/// An address, and the bytes at it.
pub type Bytes<'a> = (u64, &'a [u8]);

impl<'a> Module<'a> {
    /// The module's `.eh_frame_hdr`, if it has one.
    #[must_use]
    pub fn frame_header(&self) -> Option<Bytes<'a>> {
        let header = self.headers.iter().find(|it| it.p_type == libc::PT_GNU_EH_FRAME)?;
        let (address, bytes) = self.from(self.base as u64 + header.p_vaddr)?;
        Some((address, bytes.get(..header.p_memsz as usize)?))
    }

    /// The mapped bytes from this address to the end of its segment; `None` if that is not a
    /// read-only segment.
    #[must_use]
    pub fn from(&self, address: u64) -> Option<Bytes<'a>> {
        let left = |it: &&libc::Elf64_Phdr| {
            let only_read = it.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R;
            let readable = it.p_type == libc::PT_LOAD && only_read;
            let into = address.checked_sub(self.base as u64 + it.p_vaddr)?;
            it.p_memsz.checked_sub(into).filter(|&left| readable && left > 0)
        };
        let left = self.headers.iter().find_map(|it| left(&it))? as usize;
        let place = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: the segment is readable and not writable, and stays mapped.
        Some((address, unsafe { slice::from_raw_parts(place, left) }))
    }

    fn contains(&self, address: u64) -> bool {
        self.headers.iter().any(|it| {
            let begin = self.base as u64 + it.p_vaddr;
            it.p_type == libc::PT_LOAD && (begin..begin + it.p_memsz).contains(&address)
        })
    }
}

struct Search<F, R> {
    address: u64,
    ask: Option<F>,
    answer: Option<R>,
}

/// Calls `ask` with the module that contains this address. No module is loaded or unloaded while
/// `ask` runs, so it must not wait for a thread that does either.
pub fn with_module<R>(address: u64, ask: impl FnOnce(&Module<'_>) -> R) -> Option<R> {
    let mut search = Search { address, ask: Some(ask), answer: None };
    // SAFETY: `each` is called with the type behind that pointer, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(callback(&search)), (&raw mut search).cast()) };
    search.answer
}

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

fn callback<F: FnOnce(&Module<'_>) -> R, R>(_: &Search<F, R>) -> Callback {
    each::<F, R>
}

/// # Safety
///
/// `search` is a `Search<F, R>`, and `info` comes from the loader.
unsafe extern "C" fn each<F: FnOnce(&Module<'_>) -> R, R>(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<F, R>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader gives the number of headers, which stay valid until this returns.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let module = Module { base: info.dlpi_addr as usize, headers };
    if !module.contains(search.address) {
        return 0;
    }
    search.answer = search.ask.take().map(|ask| ask(&module));
    1
}
