//! Real programs under the library: their output is the same as without it.

mod support;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use antiphon_record::{Recording, Scope};
use support::{compile, installed, library, plain, preloaded, run, scratch, skipped, succeeds};

/// Writes a file to compress: text with repetitions, and noise. The contents are always the same.
fn input(directory: &Path) -> PathBuf {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::new();
    while bytes.len() < 6 << 20 {
        match next() % 4 {
            0 => bytes.extend(next().to_le_bytes()),
            _ => bytes.extend(format!("line {} of the input\n", next() % 1000).bytes()),
        }
    }
    let path = directory.join("input");
    assert!(std::fs::write(&path, bytes).is_ok());
    path
}

/// Runs a compressor without and with the library: output and messages must be the same.
fn compresses(program: &str, arguments: &[&str]) {
    if !installed(program) {
        return;
    }
    let directory = scratch(program);
    let input = input(&directory);
    let expected = succeeds(plain(program).args(arguments).arg(&input));
    for round in 0..3 {
        let output = succeeds(preloaded(program).args(arguments).arg(&input));
        assert!(output.stdout == expected.stdout, "{program}: another output in round {round}");
        assert_eq!(output.stderr, expected.stderr);
    }
    // Once more with the C library's locks, observed.
    let recording = directory.join("recording");
    assert!(Recording::create(&recording, Scope::Full).is_ok());
    let mut observed = preloaded(program);
    observed.env("ANTIPHON_LOCK", "glibc").env("ANTIPHON_RECORD", &recording);
    let output = succeeds(observed.args(arguments).arg(&input));
    assert!(output.stdout == expected.stdout && output.stderr == expected.stderr, "{program}");
    let seen = Recording::open(&recording).and_then(|recording| recording.read());
    assert!(seen.is_ok_and(|seen| seen.rows.iter().any(|row| row.acquisitions > 0)), "{program}");
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn xz_compresses() {
    compresses("xz", &["-T4", "-1", "-k", "-c", "--block-size=262144"]);
}

#[test]
fn pigz_compresses() {
    compresses("pigz", &["-p4", "-c", "-n"]);
}

#[test]
fn zstd_compresses() {
    compresses("zstd", &["-T4", "-B524288", "-q", "-c"]);
}

#[test]
fn pbzip2_compresses() {
    compresses("pbzip2", &["-p4", "-b1", "-k", "-c"]);
}

/// A server, which is killed when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        if self.0.kill().is_ok() {
            let _ = self.0.wait();
        }
    }
}

/// Starts a program with the library and waits until it listens at `socket`.
fn serve(program: &str, arguments: &[&str], socket: &Path) -> Server {
    let child = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", library())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut server = match child {
        Ok(child) => Server(child),
        Err(error) => panic!("{program}: {error}"),
    };
    while UnixStream::connect(socket).is_err() {
        assert!(matches!(server.0.try_wait(), Ok(None)), "{program} has ended");
        thread::sleep(Duration::from_millis(10));
    }
    server
}

/// Stores values of its own and reads them back; fails if one differs.
fn store_and_load(socket: &Path, me: usize) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    for round in 0..1500 {
        let (key, value) = (format!("key{}", round % 50), format!("{me}-{round}"));
        write!(stream, "set {key}{me} 0 0 {}\r\n{value}\r\n", value.len())?;
        line.clear();
        replies.read_line(&mut line)?;
        assert_eq!(line, "STORED\r\n");
        write!(stream, "get {key}{me} shared\r\n")?;
        let mut got = Vec::new();
        while got.last().is_none_or(|last: &String| last != "END\r\n") {
            line.clear();
            assert_ne!(replies.read_line(&mut line)?, 0);
            got.push(line.clone());
        }
        assert_eq!(got[1], format!("{value}\r\n"));
        write!(stream, "set shared 0 0 3\r\nabc\r\n")?;
        line.clear();
        replies.read_line(&mut line)?;
        assert_eq!(line, "STORED\r\n");
    }
    Ok(())
}

#[test]
fn memcached_under_load() {
    if !installed("memcached") {
        return;
    }
    let directory = scratch("memcached");
    let socket = directory.join("socket");
    let path = socket.display().to_string();
    let server = serve("memcached", &["-u", "root", "-t", "4", "-m", "16", "-s", &path], &socket);
    let results: Vec<io::Result<()>> = thread::scope(|scope| {
        let socket = &socket;
        let start = |me| scope.spawn(move || store_and_load(socket, me));
        let clients: Vec<_> = (0..8).map(start).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap_or_else(|_| Err(io::Error::other("failed"))))
            .collect()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    drop(server);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn redis_under_load() {
    if !installed("redis-server") || !installed("redis-benchmark") {
        return;
    }
    let directory = scratch("redis");
    let socket = directory.join("socket");
    let path = socket.display().to_string();
    let arguments = ["--port", "0", "--unixsocket", &path, "--save", "", "--io-threads", "3"];
    let more = ["--io-threads-do-reads", "yes", "--dir", &directory.display().to_string()];
    let arguments: Vec<&str> = arguments.into_iter().chain(more).collect();
    let mut server = serve("redis-server", &arguments, &socket);
    let tests = ["-s", &path, "-t", "set,get,incr,lpush", "-n", "20000", "-c", "30", "-P", "4"];
    let output = succeeds(preloaded("redis-benchmark").args(tests).args(["--threads", "2", "-q"]));
    assert!(!String::from_utf8_lossy(&output.stdout).to_lowercase().contains("error"));
    let answer =
        succeeds(preloaded("redis-cli").args(["-s", &path, "get", "counter:__rand_int__"]));
    assert_eq!(answer.stdout, b"20000\n");
    succeeds(plain("redis-cli").args(["-s", &path, "shutdown", "nosave"]));
    assert!(server.0.wait().is_ok_and(|status| status.success()));
    drop(server);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// A Python interpreter with its own tests installed.
fn python_with_tests(tests: &[&str]) -> Option<&'static str> {
    let modules: Vec<String> = tests.iter().map(|test| format!("test.{test}")).collect();
    let find = format!("import importlib.util as u; assert all(map(u.find_spec, {modules:?}))");
    let candidates = ["python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11"];
    candidates.into_iter().find(|python| {
        Command::new(python).args(["-c", &find]).output().is_ok_and(|out| out.status.success())
    })
}

/// The tests that Python reports as failed.
fn failed_tests(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines().skip_while(|line| !line.contains(" failed:")).skip(1);
    let mut failed = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.starts_with("    ")) {
        failed.extend(line.split_whitespace().map(str::to_owned));
    }
    failed
}

/// A test of Python that fails where its tests are installed without all of their files. It is a
/// part of its own, because a part that fails runs once more without the library.
const OF_THE_INSTALLATION: &str = "*test_import_from_another_thread*";

/// Python's own tests that use locks, each with the arguments that select a part of it. They sleep
/// most of the time, so all run at once.
const OWN_TESTS: [(&str, &[&str]); 7] = [
    ("test_threading", &["-i", OF_THE_INSTALLATION]),
    ("test_threading", &["-m", OF_THE_INSTALLATION]),
    ("test_queue", &[]),
    ("test_concurrent_futures", &["-m", "*PoolForkProcess*"]),
    ("test_concurrent_futures", &["-m", "*PoolForkserver*"]),
    ("test_concurrent_futures", &["-m", "*PoolSpawn*"]),
    (
        "test_concurrent_futures",
        &["-i", "*PoolForkProcess*", "-i", "*PoolForkserver*", "-i", "*PoolSpawn*"],
    ),
];

#[test]
fn python_passes_its_own_tests() {
    let failed: Vec<_> = thread::scope(|scope| {
        let runs = OWN_TESTS.map(|own| scope.spawn(move || python_passes(own).err()));
        let ended = runs.map(|run| run.join().expect("the run has ended"));
        let pairs = OWN_TESTS.into_iter().zip(ended);
        pairs.filter_map(|(own, failure)| Some((own, failure?))).collect()
    });
    for (own @ (test, part), (python, output)) in failed {
        // If a test also fails without the library, the installation is the reason.
        let directory = scratch("python");
        let expected = run(plain(python).args(own_test(own)).current_dir(&directory));
        assert!(std::fs::remove_dir_all(&directory).is_ok());
        let is_expected = |output: &Output| {
            !expected.status.success() && failed_tests(output) == failed_tests(&expected)
        };
        // Some tests measure time: they run once more, alone.
        let fails = !is_expected(&output)
            && python_passes(own).is_err_and(|(_, again)| {
                let said = String::from_utf8_lossy(&again.stdout);
                assert!(is_expected(&again), "{test} {part:?}:\n{said}");
                true
            });
        if fails || is_expected(&output) {
            skipped(&format!("{test} {part:?} of {python} fails without the library too"));
        }
    }
}

/// The arguments of Python for a part of one of its own tests.
fn own_test((test, part): (&'static str, &'static [&'static str])) -> Vec<&'static str> {
    ["-m", "test", "--timeout", "240"].iter().chain(part).chain([&test]).copied().collect()
}

/// Runs a part of Python's own tests with the library. An error has the interpreter and its output.
fn python_passes(
    own: (&'static str, &'static [&'static str]),
) -> Result<(), (&'static str, Output)> {
    let (test, part) = own;
    let Some(python) = python_with_tests(&[test]) else {
        skipped(&format!("a Python with {test} (libpython3-testsuite) is missing"));
        return Ok(());
    };
    let directory = scratch(&format!("python-{test}{}", part.concat().replace('*', "")));
    let output = run(preloaded(python).args(own_test(own)).current_dir(&directory));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
    if output.status.success() { Ok(()) } else { Err((python, output)) }
}

#[test]
fn python_threads_and_queues() {
    if !installed("python3") {
        return;
    }
    let program = "
import threading, queue
tasks, sums, lock, total = queue.Queue(5), queue.Queue(), threading.RLock(), 0
def produce():
    for number in range(5000):
        tasks.put(number)
def consume():
    global total
    while (number := tasks.get(timeout=60)) is not None:
        with lock, lock:
            total += number
producers = [threading.Thread(target=produce) for _ in range(3)]
consumers = [threading.Thread(target=consume) for _ in range(3)]
for thread in producers + consumers: thread.start()
for thread in producers: thread.join()
for _ in consumers: tasks.put(None)
for thread in consumers: thread.join()
print(total, threading.Event().wait(0.01), threading.Condition().acquire())
";
    let output = succeeds(preloaded("python3").args(["-c", program]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "37492500 False True\n");
    assert!(output.stderr.is_empty());
}

/// The path where the loader finds a library.
fn find_library(name: &str) -> Option<PathBuf> {
    let cache = run(Command::new("/sbin/ldconfig").arg("-p"));
    let cache = String::from_utf8_lossy(&cache.stdout).into_owned();
    let line = cache.lines().find(|line| line.trim_start().starts_with(name))?;
    line.rsplit(" => ").next().map(PathBuf::from)
}

/// An allocator that locks before all other code, before and behind us in the search order.
#[test]
fn jemalloc_preloaded_too() {
    let Some(jemalloc) = find_library("libjemalloc.so.2") else {
        return skipped("libjemalloc.so.2 is missing");
    };
    let directory = scratch("jemalloc");
    for file in ["std.cpp", "fork.c", "edges.c"] {
        let program = compile(&directory, file);
        for order in [[library(), jemalloc.as_path()], [jemalloc.as_path(), library()]] {
            let preload: Vec<OsString> = order.iter().map(|path| path.into()).collect();
            for lock in ["shfl-mutex", "glibc"] {
                let mut command = plain(&program);
                command.env("LD_PRELOAD", preload.join(":".as_ref())).env("ANTIPHON_LOCK", lock);
                let recording = directory.join("recording");
                assert!(Recording::create(&recording, Scope::Full).is_ok());
                let output = succeeds(command.env("ANTIPHON_RECORD", &recording));
                assert!(output.stdout.is_empty() && output.stderr.is_empty());
                assert!(std::fs::remove_file(&recording).is_ok());
            }
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
