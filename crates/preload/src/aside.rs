//! Tools that know the C library's locks alone: where one is in the process, the library steps
//! aside, and every call goes on to the next function of its name.
//!
//! They check how threads exclude each other, and learn that from the C library's functions, of
//! which they have versions of their own. Ours come first and are none: ThreadSanitizer would miss
//! an order that there is, and helgrind and drd would report races that there are not.
//!
//! It is decided before the first lock ([`crate::mode`]). A recording names the program, unless its
//! file says the same: then the user that started it knows.

use core::ffi::CStr;

use antiphon_record::aside::Tool;

use crate::objects::{self, Object};

/// The tool that is in this process, if one is. Call it at the start.
pub(crate) fn tool() -> Option<Tool> {
    objects::all().find_map(tool_of)
}

fn tool_of(object: &Object) -> Option<Tool> {
    // A shared runtime is a library that defines it; with a static runtime the program does.
    if object.defines(INIT).is_some() {
        return Some(Tool::ThreadSanitizer);
    }
    let path = object.path().to_bytes();
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    match name {
        _ if name.starts_with(b"vgpreload_helgrind") => Some(Tool::Helgrind),
        _ if name.starts_with(b"vgpreload_drd") => Some(Tool::Drd),
        _ => None,
    }
}

/// Whether the program's file says that it will have the tool.
pub(crate) fn is_in_file(tool: Tool) -> bool {
    let Some(program) = objects::all().next() else { return false };
    let needs = || program.needs().any(|name| name.to_bytes().starts_with(b"libtsan.so"));
    tool == Tool::ThreadSanitizer && (program.defines(INIT).is_some() || needs())
}

/// The function that a program calls that was compiled for ThreadSanitizer.
const INIT: &CStr = c"__tsan_init";
