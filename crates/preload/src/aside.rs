//! Tools that know only the C library's locks. Where one of them is in the process, this library
//! steps aside: every call goes on to the next function of its name.
//!
//! These tools check how threads exclude each other, by their own versions of the C library's
//! functions. Ours would come first and hide them: ThreadSanitizer would miss orderings that exist,
//! and helgrind and drd would report races that don't.
//!
//! The decision is made before the first lock ([`crate::mode`]). A recording names the program,
//! unless its file shows that it has the tool: then the user that started it knows.

use core::ffi::CStr;

use antiphon_record::aside::Tool;

use crate::objects::{self, Object};

/// The tool in this process, if there is one. To be called at load.
pub(crate) fn tool() -> Option<Tool> {
    objects::all().find_map(tool_of)
}

fn tool_of(object: &Object) -> Option<Tool> {
    // A shared runtime is a library that defines the function; with a static one, the program does.
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

/// Returns whether the program's file shows that it will have the tool.
pub(crate) fn is_in_file(tool: Tool) -> bool {
    let Some(program) = objects::all().next() else { return false };
    let needs = || program.needs().any(|name| name.to_bytes().starts_with(b"libtsan.so"));
    tool == Tool::ThreadSanitizer && (program.defines(INIT).is_some() || needs())
}

/// A function that programs compiled for ThreadSanitizer call.
const INIT: &CStr = c"__tsan_init";
