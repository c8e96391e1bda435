//! Executes a program by the kernel alone.
//!
//! `Command` uses `execvp` if the child has something to do before. That function makes a shell run
//! a file that the kernel refuses, even a damaged program; and `Command` passes the environment on
//! sorted. Here the kernel's answer is final, and variables keep their order.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The program to execute, its arguments and its variables, in the form that the kernel takes.
struct Image {
    program: CString,
    arguments: Strings,
    variables: Strings,
}

struct Strings {
    /// The addresses of the strings, ending in a null pointer.
    addresses: Vec<*const c_char>,
    /// The strings at these addresses.
    _texts: Vec<CString>,
}

// SAFETY: the addresses are of strings that are owned here and never written to.
unsafe impl Send for Strings {}
// SAFETY: the strings are owned here and never written to, so threads may share them.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(texts: impl Iterator<Item = OsString>) -> io::Result<Self> {
        let texts =
            texts.map(|text| CString::new(text.into_vec())).collect::<Result<Vec<_>, _>>()?;
        let addresses = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { addresses, _texts: texts })
    }
}

impl Image {
    /// Executes the program in place of this process. Returns only on failure, with the error.
    fn execute(&self) -> io::Error {
        let (arguments, variables) = (&self.arguments.addresses, &self.variables.addresses);
        // SAFETY: a string that ends in zero, and two arrays of such strings that end in null, all
        // owned by `self`.
        unsafe { libc::execve(self.program.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Makes `command` execute the file `program`, after `prepare`, which runs in the child and may
/// only make system calls. Nothing may be added to the command afterwards.
///
/// # Errors
///
/// If an argument or a variable contains a zero byte.
pub fn directly(
    command: &mut Command,
    program: &Path,
    prepare: impl Fn() + Send + Sync + 'static,
) -> io::Result<()> {
    let arguments = [command.get_program()].into_iter().chain(command.get_args());
    let image = Image {
        program: CString::new(program.as_os_str().as_bytes())?,
        arguments: Strings::new(arguments.map(OsStr::to_owned))?,
        variables: Strings::new(variables(command).into_iter())?,
    };
    let execute = move || {
        prepare();
        Err(image.execute())
    };
    // SAFETY: between fork and exec the closure only makes system calls: all its memory is
    // allocated already.
    unsafe { command.pre_exec(execute) };
    Ok(())
}

/// This process's variables with the changes of `command`: each in its old place, and new ones
/// last.
fn variables(command: &Command) -> Vec<OsString> {
    let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            None => all.retain(|(known, _)| known != name),
            Some(value) => match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = value.to_owned(),
                None => all.push((name.to_owned(), value.to_owned())),
            },
        }
    }
    let entry = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        name
    };
    all.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_executed_as_it_was_to_be() {
        let mut command = Command::new("called");
        command.args(["-c", "echo $0 $1 $NEW; exit 4", "zero", "one two"]);
        command.env("NEW", "value").env_remove("PATH");
        directly(&mut command, Path::new("/bin/sh"), || ()).expect("strings");
        let output = command.output().expect("a shell");
        assert_eq!(output.status.code(), Some(4));
        assert_eq!(output.stdout, b"zero one two value\n");
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let mut command = Command::new("/dev/null");
        directly(&mut command, Path::new("/dev/null"), || ()).expect("strings");
        let error = command.spawn().map(drop).expect_err("no program");
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    }

    #[test]
    fn variables_keep_their_order() {
        let mut command = Command::new("any");
        command.env("ANTIPHON_TEST_NEW", "1");
        let before: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        let after = variables(&command);
        assert_eq!(after.len(), before.len() + 1);
        assert!(
            before
                .iter()
                .zip(&after)
                .all(|(name, entry)| { entry.as_bytes().starts_with(name.as_bytes()) })
        );
        assert_eq!(after.last().map(OsString::as_os_str), Some(OsStr::new("ANTIPHON_TEST_NEW=1")));
    }
}
