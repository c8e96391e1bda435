//! Notes the programs that this one executes in the recording, so that a report can say which of
//! them the loader preloads no library into. The C library executes them.
//!
//! | called | what is noted |
//! |---|---|
//! | `execve` `execv` `execle` `execl` `fexecve` `execveat` `posix_spawn` | the file |
//! | `execvp` `execvpe` `execlp` `posix_spawnp` | the file that `PATH` leads to |
//!
//! An executable file is noted before the call: its absolute path, the user (for its owner, a
//! setuid program is an ordinary one), and whether `LD_PRELOAD` still names the library and the
//! library can be found, which it can't in another root directory. As in [`crate::sharing`], whose
//! macro this uses, the entries jump to the C library's functions with the caller's arguments and
//! stack, and change nothing of what these do. `system` and `popen` execute a shell from inside the
//! C library and don't come by here; the shell does.
//!
//! May be called in the child of a `vfork`: writes only to the recording and its own stack. The
//! kernel reads the program's arguments ([`foreign`]): a wrong address causes `EFAULT` in the call
//! that follows, and no crash before it.

pub(crate) mod elsewhere;
mod foreign;

use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;

use antiphon_record::HandedOn;
use antiphon_record::layout::PROGRAM_BYTES;

use crate::sharing::after;
use crate::{inherit, mode, real, recorder, sys};

type Text = *const c_char;
type Texts = *const *const c_char;

/// File names of the library: the one that the command uses, and the one that cargo builds.
const OURS: [&[u8]; 2] = [b"antiphon-preload.so", b"antiphon_preload.so"];

/// The directories searched for a program if `PATH` is not set: `confstr(_CS_PATH)`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Defines functions that note the program that is about to be executed, and return the function to
/// jump to.
macro_rules! before {
    ($(
        $name:ident($($argument:tt: $type:ty),*) = $note:expr => $real:ident, $elsewhere:ident;
    )*) => {$(
        extern "C" fn $name($($argument: $type),*) -> real::Entry {
            $note;
            elsewhere::entry(&real::$real, elsewhere::$elsewhere)
        }
    )*};
}

before! {
    before_execve(path: Text, _: Texts, environment: Texts)
        = note(libc::AT_FDCWD, path, environment) => EXECVE, antiphon_execve;
    before_execv(path: Text) = note(libc::AT_FDCWD, path, inherited()) => EXECV, antiphon_execv;
    before_execl(path: Text) = note(libc::AT_FDCWD, path, inherited()) => EXECL, antiphon_execl;
    // The environment follows the variable arguments; most programs pass on their own.
    before_execle(path: Text) = note(libc::AT_FDCWD, path, inherited()) => EXECLE, antiphon_execle;
    before_execvp(name: Text) = search(name, inherited()) => EXECVP, antiphon_execvp;
    before_execlp(name: Text) = search(name, inherited()) => EXECLP, antiphon_execlp;
    before_execvpe(name: Text, _: Texts, environment: Texts) = search(name, environment)
        => EXECVPE, antiphon_execvpe;
    before_fexecve(file: c_int, _: Texts, environment: Texts)
        = note(file, c"".as_ptr(), environment) => FEXECVE, antiphon_fexecve;
    before_execveat(folder: c_int, path: Text, _: Texts, environment: Texts)
        = note(folder, path, environment) => EXECVEAT, antiphon_execveat;
    before_posix_spawn(_: usize, path: Text, _: usize, _: usize, _: Texts, environment: Texts)
        = note(libc::AT_FDCWD, path, environment) => POSIX_SPAWN, antiphon_posix_spawn;
    before_posix_spawnp(_: usize, name: Text, _: usize, _: usize, _: Texts, environment: Texts)
        = search(name, environment) => POSIX_SPAWNP, antiphon_posix_spawnp;
}

after! {
    execve(_path: Text, _arguments: Texts, _environment: Texts) -> c_int = before_execve;
    execv(_path: Text, _arguments: Texts) -> c_int = before_execv;
    execl(_path: Text, _argument: Text) -> c_int = before_execl;
    execle(_path: Text, _argument: Text) -> c_int = before_execle;
    execvp(_name: Text, _arguments: Texts) -> c_int = before_execvp;
    execlp(_name: Text, _argument: Text) -> c_int = before_execlp;
    execvpe(_name: Text, _arguments: Texts, _environment: Texts) -> c_int = before_execvpe;
    fexecve(_file: c_int, _arguments: Texts, _environment: Texts) -> c_int = before_fexecve;
    execveat(
        _folder: c_int, _path: Text, _arguments: Texts, _environment: Texts, _flags: c_int
    ) -> c_int = before_execveat;
    posix_spawn(
        _child: usize, _path: Text, _actions: usize, _attributes: usize, _arguments: Texts,
        _environment: Texts
    ) -> c_int = before_posix_spawn;
    posix_spawnp(
        _child: usize, _name: Text, _actions: usize, _attributes: usize, _arguments: Texts,
        _environment: Texts
    ) -> c_int = before_posix_spawnp;
}

/// The environment of this program.
fn inherited() -> Texts {
    // SAFETY: the C library's word, which is always readable.
    unsafe { mode::environ }
}

/// Notes the program at `path`, which may be relative to `folder`; if it is empty, `folder` itself.
fn note(folder: c_int, path: Text, environment: Texts) {
    if inherit::is_alone() || !recorder::is_on() || !is_file(folder, path) {
        return;
    }
    // SAFETY: a string, which the kernel has been able to read.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !path.is_empty() || folder != libc::AT_FDCWD {
        note_if_there(folder, &[path], environment);
    }
}

/// Notes the first program of that name in the folders of `PATH`.
fn search(name: Text, environment: Texts) {
    if name.is_null() || inherit::is_alone() || !recorder::is_on() {
        return;
    }
    // SAFETY: the caller's string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    if bytes.is_empty() || bytes.contains(&b'/') {
        return note(libc::AT_FDCWD, name, environment);
    }
    let folders = mode::environment(c"PATH").map_or(DEFAULT_PATH, CStr::to_bytes);
    for folder in folders.split(|&byte| byte == b':') {
        let path: &[&[u8]] = if folder.is_empty() { &[bytes] } else { &[folder, b"/", bytes] };
        if note_if_there(libc::AT_FDCWD, path, environment) {
            return;
        }
    }
}

/// Notes the program whose path consists of these pieces, if it can be executed. Returns whether it
/// can.
fn note_if_there(folder: c_int, pieces: &[&[u8]], environment: Texts) -> bool {
    let mut path = Path::new();
    let whole = path.begin(folder, pieces[0]) && pieces.iter().all(|piece| path.push(piece));
    if !whole {
        // Counted as a program without a name.
        recorder::executes(b"", HandedOn::No);
        return true;
    }
    let there = path.can_be_executed();
    if there && let Some(handed_on) = is_handed_on(environment) {
        recorder::executes(path.bytes(), handed_on);
    }
    there
}

/// Returns whether the loader will preload the library; `None` if the environment can't be read.
fn is_handed_on(environment: Texts) -> Option<HandedOn> {
    let is_told = if environment == inherited() {
        let preload = mode::variable(environment, PRELOAD).map_or(&b""[..], CStr::to_bytes);
        OURS.iter().any(|name| preload.windows(name.len()).any(|part| part == *name))
    } else {
        foreign::says(environment, PRELOAD, &OURS)?
    };
    Some(match (is_told, elsewhere::is_in_reach()) {
        (false, _) => HandedOn::No,
        (true, true) => HandedOn::Yes,
        (true, false) => HandedOn::OutOfReach,
    })
}

/// The variable that names libraries for the loader to preload.
const PRELOAD: &[u8] = b"LD_PRELOAD";

/// A path, absolute after `begin`, and a terminating zero.
struct Path {
    bytes: [u8; PROGRAM_BYTES + 1],
    length: usize,
}

impl Path {
    fn new() -> Self {
        Self { bytes: [0; PROGRAM_BYTES + 1], length: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends `more`; returns `false` if it does not fit.
    fn push(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        let fits = end <= PROGRAM_BYTES;
        if fits {
            self.bytes[self.length..end].copy_from_slice(more);
            self.length = end;
        }
        fits
    }

    /// Begins the path with the folder that it is relative to: `folder`, as for `openat`.
    fn begin(&mut self, folder: c_int, path: &[u8]) -> bool {
        if path.starts_with(b"/") {
            return true;
        }
        let mut link = Self::new();
        let named = if folder == libc::AT_FDCWD {
            link.push(b"/proc/self/cwd")
        } else {
            link.push(b"/proc/self/fd/") && link.push_number(folder)
        };
        let link = CStr::from_bytes_until_nul(&link.bytes).ok().filter(|_| named);
        self.length = link.map_or(0, |link| sys::leads_to(link, &mut self.bytes));
        self.length != 0 && (path.is_empty() || self.push(b"/"))
    }

    fn push_number(&mut self, number: c_int) -> bool {
        let number = number.unsigned_abs();
        let more = number < 10 || self.push_number((number / 10).cast_signed());
        more && self.push(&[b'0' + (number % 10) as u8])
    }

    fn can_be_executed(&self) -> bool {
        let at = libc::AT_FDCWD as isize as usize;
        let args = [at, self.bytes.as_ptr() as usize, libc::X_OK as usize, 0];
        // SAFETY: the path ends in zero.
        let allowed = unsafe { sys::call(libc::SYS_faccessat, args) }.is_some();
        allowed && is_file(libc::AT_FDCWD, self.bytes.as_ptr().cast())
    }
}

/// Returns whether `path`, relative to `folder` as for `openat`, is a regular file. Only the kernel
/// reads the path: a caller that passes a wrong address gets `EFAULT`.
fn is_file(folder: c_int, path: Text) -> bool {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    let at = folder as isize as usize;
    let flags = libc::AT_EMPTY_PATH as usize;
    let args = [at, path as usize, status.as_mut_ptr() as usize, flags];
    // SAFETY: the kernel checks the path's address, and writes to memory that is ours.
    let told = unsafe { sys::call(libc::SYS_newfstatat, args) }.is_some();
    // SAFETY: a structure of numbers, for which zero is valid.
    told && unsafe { status.assume_init() }.st_mode & libc::S_IFMT == libc::S_IFREG
}
