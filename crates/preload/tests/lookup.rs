//! Functions that a program finds at run time (by `dlsym` and the like) instead of by symbol name:
//! a mutex locked through one of them is locked for all others.

mod support;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use antiphon_record::{Recording, Scope};
use support::{compile, installed, library, plain, preloaded, scratch, succeeds};

/// Compiles the C file of that name to a library in `directory`.
fn compile_library(directory: &Path, file: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(file);
    let library = directory.join(name);
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-shared", "-fPIC"]);
    succeeds(compiler.arg(source).arg("-o").arg(&library).args(flags));
    library
}

#[test]
fn what_is_found_by_any_way_locks_the_same() {
    let directory = scratch("lookup");
    let program = compile(&directory, "lookup.c");
    let plug = compile_library(&directory, "lookup_plug.c", "plug.so", &[]);
    let own = compile_library(&directory, "lookup_plug.c", "own.so", &["-DOWN"]);
    let bare = compile_library(&directory, "lookup_plug.c", "bare.so", &["-nostdlib", "-DBARE"]);
    let wrapper = compile_library(&directory, "lookup_wrapper.c", "libwrapper.so", &[]);
    let run = |before: &[&OsStr], lock: &str, wrapped: &str, recorded: bool| {
        let mut command = plain(&program);
        command.arg(wrapped).args([&plug, &own, &bare]).env("ANTIPHON_LOCK", lock);
        command.env("LD_LIBRARY_PATH", &directory).env("LD_BIND_NOW", "1");
        command.env("LD_PRELOAD", before.join(OsStr::new(":")));
        let recording = directory.join("recording");
        if recorded {
            assert!(Recording::create(&recording, Scope::Full).is_ok());
            command.env("ANTIPHON_RECORD", &recording);
        }
        let output = succeeds(&mut command);
        assert!(!recorded || std::fs::remove_file(&recording).is_ok());
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{before:?} {lock}");
    };
    let (ours, wrapper) = (library().as_os_str(), wrapper.as_os_str());
    run(&[], "", "none", false);
    for lock in ["shfl-mutex", "shfl-mutex+light", "glibc"] {
        for recorded in [false, true] {
            run(&[ours], lock, "none", recorded);
            run(&[ours, wrapper], lock, "behind", recorded);
            run(&[wrapper, ours], lock, "first", recorded);
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn pythons_foreign_functions_are_ours() {
    if !installed("python3") {
        return;
    }
    let script = "
import ctypes
mutex, names = ctypes.create_string_buffer(40), ['pthread_mutex_lock', 'pthread_mutex_trylock']
ways = [ctypes.CDLL(None), ctypes.CDLL('libc.so.6'), ctypes.CDLL('libpthread.so.0')]
for lock in ways:
    for other in ways:
        lock.pthread_mutex_lock(mutex)
        assert other.pthread_mutex_trylock(mutex) == 16
        other.pthread_mutex_unlock(mutex)
for name in names:
    assert len({ctypes.cast(getattr(way, name), ctypes.c_void_p).value for way in ways}) == 1
";
    for lock in ["shfl-mutex", "shfl-mutex+light"] {
        let mut python = preloaded("python3");
        succeeds(python.args(["-c", script]).env("ANTIPHON_LOCK", lock));
    }
}

#[test]
fn luas_foreign_functions_are_ours() {
    if !installed("luajit") {
        return;
    }
    let script = "
local ffi = require 'ffi'
ffi.cdef[[
int pthread_mutex_lock(void *); int pthread_mutex_trylock(void *); int pthread_mutex_unlock(void *);
]]
local mutex = ffi.new('uint64_t[5]')
local ways = { ffi.C, ffi.load('libc.so.6'), ffi.load('libpthread.so.0') }
for _, lock in ipairs(ways) do
    for _, other in ipairs(ways) do
        assert(lock.pthread_mutex_lock(mutex) == 0)
        assert(other.pthread_mutex_trylock(mutex) == 16)
        assert(other.pthread_mutex_unlock(mutex) == 0)
    end
end
";
    succeeds(preloaded("luajit").args(["-e", script]));
}
