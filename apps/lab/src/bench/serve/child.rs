//! A server as a process: its address, CPU time and end.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::compete::usage::process_ns;

/// A server that listens. It ends when this is dropped, or with this process.
pub struct Server {
    child: Child,
    /// A server that is another program ends by itself when this pipe is closed.
    _stdin: Option<ChildStdin>,
    /// Address at which it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts the server, and waits until it has printed the port of this machine at which it
    /// listens.
    ///
    /// # Errors
    ///
    /// One line, if it can't be started or does not listen.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("can't start the server: {error}"))?;
        let mut said = String::new();
        let read = child.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut said));
        let port = said.trim().parse();
        let server = Self {
            _stdin: child.stdin.take(),
            child,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.clone().unwrap_or(0))),
        };
        match (read, port) {
            (Some(Ok(_)), Ok(_)) => Ok(server),
            _ => Err(format!("the server does not listen; it said '{}'", said.trim())),
        }
    }

    /// Returns the CPU time that all its threads have used, in nanoseconds.
    ///
    /// # Errors
    ///
    /// One line, if the server has ended.
    pub fn cpu_ns(&self) -> Result<u64, String> {
        process_ns(self.child.id()).ok_or_else(|| "the server has ended".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if the server has ended already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn a_server_says_its_port_and_uses_cpu_time() {
        let server = Server::start(shell("echo 4321; while :; do :; done")).expect("a port");
        assert_eq!(server.address.port(), 4321);
        let before = server.cpu_ns().expect("it runs");
        while server.cpu_ns().expect("it runs") == before {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_that_does_not_listen_is_no_server() {
        for text in ["exit 3", "echo no port"] {
            assert!(Server::start(shell(text)).is_err_and(|why| why.contains("not listen")));
        }
        let none = Server::start(Command::new("/nowhere/at/all"));
        assert!(none.is_err_and(|why| why.contains("can't start")));
    }
}
