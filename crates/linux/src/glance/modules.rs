//! The program and its libraries, as the loader has them: where the tables are by which frames are
//! found.

use core::ffi::{c_int, c_void};
use core::slice;

/// A file that is mapped, which can't be unmapped while one has this.
#[derive(Debug)]
pub struct Module<'a> {
    base: usize,
    headers: &'a [libc::Elf64_Phdr],
}

/// The address of some bytes, and the bytes.
pub type Bytes<'a> = (u64, &'a [u8]);

impl<'a> Module<'a> {
    /// The module's `.eh_frame_hdr`, if it has one.
    #[must_use]
    pub fn frame_header(&self) -> Option<Bytes<'a>> {
        let header = self.headers.iter().find(|it| it.p_type == libc::PT_GNU_EH_FRAME)?;
        let (address, bytes) = self.from(self.base as u64 + header.p_vaddr)?;
        Some((address, bytes.get(..header.p_memsz as usize)?))
    }

    /// The bytes that are mapped from this address on, to the end of what was mapped with it, in a
    /// segment that may not be written to.
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
        // SAFETY: of a segment that may be read, and not written to; it stays mapped.
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

/// Asks the module that has this address. While `ask` runs nothing is loaded or unloaded: it must
/// not wait for a thread that does.
pub fn with_module<R>(address: u64, ask: impl FnOnce(&Module<'_>) -> R) -> Option<R> {
    let mut search = Search { address, ask: Some(ask), answer: None };
    // SAFETY: `each` is called with what is behind that pointer, before this is back.
    unsafe { libc::dl_iterate_phdr(Some(callback(&search)), (&raw mut search).cast()) };
    search.answer
}

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

fn callback<F: FnOnce(&Module<'_>) -> R, R>(_: &Search<F, R>) -> Callback {
    each::<F, R>
}

/// # Safety
///
/// `search` is a `Search<F, R>`, and `info` the loader's.
unsafe extern "C" fn each<F: FnOnce(&Module<'_>) -> R, R>(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<F, R>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's, of that number, until this is back.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let module = Module { base: info.dlpi_addr as usize, headers };
    if !module.contains(search.address) {
        return 0;
    }
    search.answer = search.ask.take().map(|ask| ask(&module));
    1
}
