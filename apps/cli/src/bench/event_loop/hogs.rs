//! Programs without timers that want all of the CPU.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::work::{CHUNK_NS, Pace};
use crate::bench::neighbours::end_with_parent;

/// Works until it is killed.
pub fn spin_for_good(pace: Pace) -> ! {
    loop {
        pace.burn(CHUNK_NS);
    }
}

/// gcc's compiler proper, and a file for it. The file is gone when this is; a compiler that is
/// killed leaves it in the temporary folder until the next run of the same process number.
pub struct Compiler {
    program: PathBuf,
    source: Source,
}

/// A file that is removed.
struct Source(PathBuf);

impl Drop for Source {
    fn drop(&mut self) {
        // Who has removed it before us was right.
        let _ = fs::remove_file(&self.0);
    }
}

/// Functions of the file: about 0.3 s of work.
const FUNCTIONS: usize = 400;

impl Compiler {
    /// With a file to compile.
    ///
    /// # Errors
    ///
    /// One line: the file can't be written, or is not compiled.
    pub fn new(program: &Path) -> Result<Self, String> {
        let name = format!("antiphon-loop-{}.i", std::process::id());
        let source = Source(std::env::temp_dir().join(name));
        let written = fs::write(&source.0, text(FUNCTIONS));
        written.map_err(|error| format!("{}: {error}", source.0.display()))?;
        Ok(Self { program: program.to_owned(), source })
    }

    /// Compiles until it is killed.
    ///
    /// # Errors
    ///
    /// One line: the compiler does not.
    pub fn compile_for_good(&self) -> Result<(), String> {
        loop {
            self.compile()?;
        }
    }

    fn compile(&self) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(["-quiet", "-O1", "-fpreprocessed", "-o", "/dev/null"]).arg(&self.source.0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let end = || {
            end_with_parent();
            Ok(())
        };
        // SAFETY: one system call, which a child of any process may make.
        unsafe { command.pre_exec(end) };
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.program.display())),
            Err(error) => Err(format!("{}: {error}", self.program.display())),
        }
    }
}

/// Where gcc has its compiler; or, in one line, what is missing.
pub fn compiler() -> Result<PathBuf, String> {
    let missing = "gcc's cc1 is not there: apt install gcc, or give --competitor spin";
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output();
    let output = output.map_err(|_| missing.to_owned())?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if path.is_absolute() && path.is_file() { Ok(path) } else { Err(missing.to_owned()) }
}

/// A C file of so many functions, none like the other.
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
        let file = compiler.source.0.clone();
        assert!(file.is_file());
        drop(compiler);
        assert!(!file.exists());
    }

    #[test]
    fn a_compiler_that_fails_is_told() {
        for (program, said) in [("/nowhere/cc1", "No such file"), ("/bin/false", "ended with")] {
            let compiler = Compiler::new(Path::new(program)).expect("a file");
            assert!(compiler.compile_for_good().is_err_and(|why| why.contains(said)), "{program}");
        }
    }
}
