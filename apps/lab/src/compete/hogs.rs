//! Programs without timers that want all of the CPU.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use antiphon_linux::die_with_parent;

use super::work::{CHUNK_NS, Pace};

/// Computes until the process is killed.
pub fn spin_for_good(pace: Pace) -> ! {
    loop {
        pace.burn(CHUNK_NS);
    }
}

/// gcc's compiler proper, and a source file in memory, so that nothing is left behind when this
/// process is killed.
pub struct Compiler {
    program: PathBuf,
    source: File,
}

/// Number of functions in the file: about 0.3 s of work.
const FUNCTIONS: usize = 400;

impl Compiler {
    /// Makes a compiler with a file to compile.
    ///
    /// # Errors
    ///
    /// One line, if there is no memory for the file.
    pub fn new(program: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("a file in memory: {error}");
        // SAFETY: takes a name, which is a constant, and flags.
        let fd = unsafe { libc::memfd_create(c"antiphon-loop".as_ptr(), libc::MFD_CLOEXEC) };
        if fd == -1 {
            return Err(failed(std::io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was opened just now, and no other code has it.
        let mut source = unsafe { File::from_raw_fd(fd) };
        source.write_all(text(FUNCTIONS).as_bytes()).map_err(failed)?;
        Ok(Self { program: program.to_owned(), source })
    }

    /// Returns the path by which other processes find the file.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.source.as_raw_fd())
    }

    /// Compiles until the process is killed.
    ///
    /// # Errors
    ///
    /// One line, if the compiler fails.
    pub fn compile_for_good(&self) -> Result<(), String> {
        loop {
            self.compile()?;
        }
    }

    fn compile(&self) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(["-quiet", "-O1", "-fpreprocessed", "-o", "/dev/null"]).arg(self.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match die_with_parent(&mut command).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.program.display())),
            Err(error) => Err(format!("{}: {error}", self.program.display())),
        }
    }
}

/// Returns the path of gcc's compiler. The error is one line that says what is missing.
pub fn compiler() -> Result<PathBuf, String> {
    let missing = "gcc's cc1 is not there: apt install gcc, or give --competitor spin";
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output();
    let output = output.map_err(|_| missing.to_owned())?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if path.is_absolute() && path.is_file() { Ok(path) } else { Err(missing.to_owned()) }
}

/// Returns a C file of `functions` functions, all different.
fn text(functions: usize) -> String {
    let mut text = String::new();
    for number in 0..functions {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "int f{number}(int *a, int n) {{\n int s = {number};\n for (int i = 0; i < n; i++) {{\n\
             \x20 if (a[i] % {} == 0) s += a[i] * {number}; else s ^= a[n - 1 - i] >> (i & 7);\n\
             \x20 for (int j = i; j < n; j += {}) a[j] = s - a[j] * (j + i);\n }}\n return s;\n}}",
            number % 17 + 2,
            number % 5 + 1
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_is_c() {
        let program = match compiler() {
            Ok(program) => program,
            Err(missing) => return eprintln!("NOT TESTED: {missing}"),
        };
        let compiler = Compiler::new(&program).expect("a file");
        assert_eq!(compiler.compile(), Ok(()));
    }

    #[test]
    fn a_compiler_that_fails_is_told() {
        for (program, said) in [("/nowhere/cc1", "No such file"), ("/bin/false", "ended with")] {
            let compiler = Compiler::new(Path::new(program)).expect("a file");
            assert!(compiler.compile_for_good().is_err_and(|why| why.contains(said)), "{program}");
        }
    }
}
