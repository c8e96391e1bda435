//! The dump of a hung program: the words of its locks, and the states of its threads.
//!
//! A dump never fails: missing information is reported in its place.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::board::{Kind, Object, Role, Snapshot};

/// How long the debugger may take, in seconds.
const DEBUGGER_S: &str = "60";

/// The dump of the process and of the child that it waits for.
pub fn dump(process: u32, board: &Snapshot) -> String {
    let mut text = String::new();
    for (slot, worker) in board.workers.iter().enumerate() {
        if worker.role != Role::Absent {
            line(
                &mut text,
                format_args!("worker {slot}: {:?}, {} done", worker.role, worker.progress),
            );
        }
    }
    let processes = [process, board.child].into_iter().filter(|&process| process != 0);
    // A debugger interrupts the waits of the process that it stops, and takes seconds. So the
    // reports that disturb no process come first, also for the child, which may be the process that
    // hangs.
    for process in processes.clone() {
        line(&mut text, format_args!("\nprocess {process}"));
        objects(&mut text, process, &board.objects);
        threads(&mut text, process);
    }
    for process in processes {
        line(&mut text, format_args!("\nstacks of process {process}\n{}", stacks(process)));
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes all that is written to it");
}

/// The words of each lock, read from the process's memory.
fn objects(text: &mut String, process: u32, objects: &[Object]) {
    let memory = File::open(format!("/proc/{process}/mem"));
    for object in objects {
        let mut bytes = [0; 56];
        let bytes = &mut bytes[..size(object.kind)];
        let read = memory.as_ref().map_err(ToString::to_string).and_then(|memory| {
            memory.read_exact_at(bytes, object.address).map_err(|error| error.to_string())
        });
        let words = match read {
            Ok(()) => words(object.kind, bytes),
            Err(error) => error,
        };
        line(text, format_args!("{:?} at {:#x}: {words}", object.kind, object.address));
    }
}

/// Number of bytes of a lock to show: our part, and what is beside it.
fn size(kind: Kind) -> usize {
    match kind {
        Kind::Mutex => 24,
        Kind::Cond => 32,
        Kind::Spin => 4,
        Kind::Rwlock => 56,
    }
}

/// The words in hexadecimal, and the fields of our locks by name. (Without the library, the names
/// mean nothing.)
fn words(kind: Kind, bytes: &[u8]) -> String {
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap());
    let mut text = String::new();
    for at in 0..bytes.len() / 4 {
        text += &format!("{:08x} ", word(at));
    }
    let lock = || {
        let (flags, head) = (word(0) as u8, word(0) >> 16);
        let flag = |bit, name| if flags & bit != 0 { name } else { "" };
        let flags = [flag(1, " locked"), flag(2, " wake"), flag(4, " fair")].concat();
        format!("({}) head {head:#x} tail {:#x}", flags.trim_start(), word(1))
    };
    match kind {
        Kind::Mutex => text += &format!(" {} owner {} count {}", lock(), word(2), word(3)),
        Kind::Cond => {
            text += &format!(" list {} first {:#x} last {:#x}", lock(), word(2), word(3));
            text += &format!(" inside {} epoch {}", word(5), word(6));
        }
        Kind::Spin => {}
        Kind::Rwlock => {
            let state = u64::from(word(1)) << 32 | u64::from(word(0));
            let (readers, head, flags) = (state >> 40, state >> 8 & 0xffff, state & 0xff);
            text += &format!(" readers {readers} head {head:#x} flags {flags:#x}");
            text += &format!(" tail {:#x}", word(2));
        }
    }
    text
}

/// The kernel's view of each thread.
fn threads(text: &mut String, process: u32) {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return line(text, format_args!("it has no threads any more"));
    };
    let mut tasks: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    tasks.sort();
    for task in tasks {
        for file in ["stat", "wchan", "syscall"] {
            line(text, format_args!("{}: {}", task.join(file).display(), said(&task.join(file))));
        }
    }
}

fn said(file: &Path) -> String {
    match std::fs::read_to_string(file) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The stacks of all threads, from a debugger if there is one.
fn stacks(process: u32) -> String {
    let output = Command::new("timeout")
        .args(["-k", "5", DEBUGGER_S, "gdb", "-nx", "-batch", "-p"])
        .arg(process.to_string())
        .args(["-ex", "thread apply all bt"])
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => {
            format!("no stacks: gdb: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Err(error) => format!("no stacks: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_our_locks_have_names() {
        let mut bytes = [0; 24];
        bytes[0] = 3;
        bytes[2] = 7;
        bytes[4] = 9;
        bytes[8] = 42;
        let text = words(Kind::Mutex, &bytes);
        assert!(text.starts_with("00070003 00000009 0000002a "), "{text}");
        assert!(text.contains("(locked wake) head 0x7 tail 0x9 owner 42 count 0"), "{text}");
        assert_eq!(words(Kind::Spin, &[1, 0, 0, 0]), "00000001 ");
    }

    #[test]
    fn a_dump_says_what_it_could_not_get() {
        let mut text = String::new();
        objects(&mut text, std::process::id(), &[Object { kind: Kind::Spin, address: 0 }]);
        threads(&mut text, std::process::id());
        assert!(text.starts_with("Spin at 0x0: "), "{text}");
        assert!(text.contains("/syscall: "), "{text}");
    }
}
