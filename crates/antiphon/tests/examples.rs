//! Runs the examples with small numbers, as users run them: they must succeed, print the expected
//! text, and refuse wrong arguments in one line.

#[path = "support/example.rs"]
mod example;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;
use std::{env, process};

use example::{example, refuses, succeeds};

const LONG: Duration = Duration::from_secs(60);

/// A server that has printed its address; ended when this is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Returns `None` if there is no such example.
    fn begin(name: &str, more: &[&str]) -> Option<Self> {
        let mut command = example(name)?;
        command.arg("127.0.0.1:0").args(more).stdout(Stdio::piped());
        let mut child = command.spawn().expect("timeout runs it");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let at = line.find("127.0.0.1:").expect("it says where it listens");
        let address = line[at..].split([',', '\n']).next().expect("an address").to_owned();
        Some(Self { child, address })
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a time");
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("a number of a process");
        // SAFETY: a child of ours that was not waited for: `timeout`, which passes it on.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

#[test]
fn echo_sends_back_what_comes() {
    let Some(server) = Server::begin("echo", &["2"]) else { return };
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for (number, client) in (0_u8..).zip(&mut clients) {
        client.write_all(&[number; 1000]).expect("it is read");
    }
    for (number, mut client) in (0_u8..).zip(clients) {
        client.shutdown(Shutdown::Write).expect("connected");
        let mut back = Vec::new();
        client.read_to_end(&mut back).expect("an echo");
        assert_eq!(back, [number; 1000]);
    }
    refuses("echo", &["127.0.0.1:0", "no"], 2, "usage: echo [ADDRESS:PORT [THREADS]]");
    refuses("echo", &["nowhere"], 2, "usage: echo");
}

#[test]
fn http_answers_on_connections_that_are_kept() {
    let Some(server) = Server::begin("http", &["2", "60"]) else { return };
    let mut client = server.connect();
    for path in ["/one", "/another"] {
        write!(client, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is read");
    }
    client.shutdown(Shutdown::Write).expect("connected");
    let mut said = String::new();
    client.read_to_string(&mut said).expect("answers");
    assert_eq!(said.matches("HTTP/1.1 200").count(), 2, "{said}");
    assert!(said.contains("\n/one\n") && said.contains("\n/another\n"), "{said}");
    refuses("http", &["127.0.0.1:0", "2", "0"], 2, "usage: http");
}

/// A directory with two files, which is removed when this is dropped.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, contents: [&[u8]; 2]) -> Self {
        let directory = env::temp_dir().join(format!("antiphon-{name}-{}", process::id()));
        fs::create_dir_all(directory.join("inner")).expect("a directory");
        let files = Self(directory);
        fs::write(files.path("one"), contents[0]).expect("a file");
        fs::write(files.path("inner/other"), contents[1]).expect("a file");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The staged pipeline on files: it fails by itself if a loop finds other words.
#[test]
fn words_counts_what_a_loop_counts() {
    let files = Files::new("words", [b"to and fro and", b"and to\nbe"]);
    let directory = files.0.to_str().expect("it is UTF-8");
    for threads in ["1", "3"] {
        let Some(said) = succeeds("words", &[directory, threads]) else { return };
        assert!(said.contains(r#"[("and", 3), ("to", 2), ("#), "{said}");
    }
    refuses("words", &["/no/such/directory"], 2, "/no/such/directory: No such file");
    refuses("words", &[directory, "0"], 2, "THREADS is a number from 1 on");
}

#[test]
fn upload_writes_what_was_sent() {
    // Several blocks of 64 KiB, and a part of a block.
    let content = (0..250_u8).collect::<Vec<_>>().repeat(1500);
    let files = Files::new("upload", [&content, b""]);
    for name in ["one", "inner/other"] {
        let file = files.path(name);
        let Some(said) = succeeds("upload", &[file.to_str().expect("it is UTF-8")]) else { return };
        assert!(said.ends_with("what is on the disk is what was sent\n"), "{said}");
    }
    refuses("upload", &["/no/such/file"], 1, "/no/such/file: No such file");
}

/// The example itself fails if a received sample is wrong.
#[test]
fn conference_has_each_hear_the_sum_of_the_others() {
    let Some(said) = succeeds("conference", &["3", "3", "1", "2"]) else { return };
    let counts = "450 frames sent to listeners: ";
    assert!(
        said.starts_with(counts) && said.contains(" 0 not the sum of the participants in"),
        "{said}"
    );
    refuses("conference", &["3", "1"], 2, "LEGS is a number from 2 to 32");
    refuses("conference", &["1", "2", "1", "1", "1"], 2, "there are CONFERENCES");
}

#[test]
fn storm_loses_nobody() {
    let Some(said) = succeeds("storm", &["3000"]) else { return };
    for how in ["one token", "a child each"] {
        assert!(said.contains(&format!("3000 fibers, {how}: cancelled in")), "{said}");
    }
    refuses("storm", &["many"], 2, "usage: storm [FIBERS]");
}

#[test]
fn fibers_are_made_yield_and_wait() {
    let Some(said) = succeeds("fibers", &["3000", "2000"]) else { return };
    for line in ["to spawn and join one", "yield_soft: ", "3000 that wait: ", "all have gone on"] {
        assert!(said.contains(line), "no {line} in {said}");
    }
    refuses("fibers", &["0"], 2, "FIBERS is a number from 1 on");
    refuses("fibers", &["1", "999"], 2, "TIMES is a number from 1000 on");
}
