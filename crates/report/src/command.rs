//! Errors of the command line, in the form of all errors: one line, and an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::failure::Failure;

/// Prints clap's message about this process's arguments, and returns the exit code. Help goes to
/// stdout unchanged; an error becomes one line on stderr.
///
/// `wrappers` are verbs that exit with the code of the program under them: their own failures are
/// 125.
pub fn refuse<C: CommandFactory>(error: &clap::Error, wrappers: &[&str]) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        let code = u8::from(error.exit_code() != 0) * 2;
        // If the reader has closed the stream, the help is not wanted.
        let _ = error.print();
        return ExitCode::from(code);
    }
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let line = one_line::<C>(&error.to_string(), &arguments);
    let is_wrapper = arguments.first().is_some_and(|verb| wrappers.iter().any(|w| verb == w));
    if is_wrapper { Failure::wrapper(line) } else { Failure::arguments(line) }.report()
}

/// Turns clap's message into one line: what is wrong, the alternatives, and where to find more.
#[must_use]
pub fn one_line<C: CommandFactory>(message: &str, arguments: &[OsString]) -> String {
    let mut line = String::new();
    for part in message.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with("Usage: ") || part.starts_with("For more information") {
            continue;
        }
        let part = part.strip_prefix("error: ").unwrap_or(part);
        let part = part.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(part);
        let between = if line.is_empty() || line.ends_with(':') { "" } else { ";" };
        line += &format!("{between} {part}");
    }
    format!("{}; see {} --help", line.trim_start(), verb(C::command(), arguments))
}

/// `antiphon` and the verbs at the beginning of the arguments.
fn verb(mut command: clap::Command, arguments: &[OsString]) -> String {
    let mut name = "antiphon".to_owned();
    for word in arguments {
        let Some(verb) = command.find_subcommand(word).cloned() else { break };
        name += &format!(" {}", verb.get_name());
        command = verb;
    }
    name
}
