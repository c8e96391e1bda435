//! Real programs under the library: they behave the same as without it.

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use antiphon_record::coop::Count;
use support::{Stage, installed, plain, succeeds};

/// A server and its clients, timers, a subprocess, and a burst of work.
const ASYNCIO: &str = "
import asyncio, sys
async def serve(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()
async def ask(port, word):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    writer.write(word.encode() + b'\\n')
    answer = await reader.readline()
    writer.close()
    return answer
async def ticks():
    for at in range(20):
        await asyncio.sleep(0.005)
    return at
async def work():
    for at in range(2000):
        await asyncio.sleep(0)
    return at
async def child():
    made = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(6 * 7)',
                                                stdout=asyncio.subprocess.PIPE)
    return (await made.communicate())[0]
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    asked = [ask(port, f'word {at}') for at in range(20)]
    print(await asyncio.gather(ticks(), work(), child(), *asked))
asyncio.run(main())
";

#[test]
fn python_asyncio() {
    if !installed("python3") {
        return;
    }
    let stage = Stage::new("asyncio");
    let expected = succeeds(plain("python3").args(["-c", ASYNCIO]));
    for tier in ["t3", "auto"] {
        let output = succeeds(stage.under(tier, "python3").args(["-c", ASYNCIO]));
        assert_eq!((output.stdout, output.stderr), (expected.stdout.clone(), Vec::new()));
    }
    let loops = stage.loops();
    // While the loop has work to do, its next timer can't be seen.
    assert!(loops.iter().any(|row| row.baton && row.count(Count::Zero) > 100), "{loops:?}");
    assert!(loops.iter().any(|row| row.count(Count::Due) > 0), "{loops:?}");
}

/// A server and a client, timers, a thread of the pool that reads a file.
const NODE: &str = "
const net = require('net'), fs = require('fs');
let ticks = 0;
const timer = setInterval(() => { if (++ticks >= 20 && ended && read) { done(); } }, 5);
const server = net.createServer(c => c.on('data', d => c.end(d.toString().toUpperCase())));
let heard = '', read = '', ended = false;
server.listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1', () => c.write('word'));
  c.on('data', d => heard += d);
  c.on('end', () => { server.close(); ended = true; });
});
fs.readFile('/etc/hostname', () => { read = 'read'; });
function done() { clearInterval(timer); console.log(heard, read); }
";

#[test]
fn node_that_waits_for_timers() {
    if !installed("node") {
        return;
    }
    let stage = Stage::new("node");
    let expected = succeeds(plain("node").args(["-e", NODE]));
    assert_eq!(expected.stdout, b"WORD read\n");
    let output = succeeds(stage.under("auto", "node").args(["-e", NODE]));
    assert_eq!((output.stdout, output.stderr), (expected.stdout, Vec::new()));
    let loops = stage.loops();
    // The server has little to do, so its timers are seen; on a busy machine not all of them,
    // because it waits with a timeout of 0 when one is overdue.
    assert!(loops.iter().any(|row| row.baton && row.count(Count::Due) > 0), "{loops:?}");
}

/// A client of the X server, without a library: connects, and asks a thousand times which window
/// has the input focus. X Window System Protocol, §8 "Connection Setup" and §9.
fn asks(display: &str) {
    let mut stream =
        UnixStream::connect(format!("/tmp/.X11-unix/X{display}")).expect("the server listens");
    stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("room");
    let mut head = [0; 8];
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(head[0], 1, "refused");
    let rest = usize::from(u16::from_le_bytes([head[6], head[7]])) * 4;
    stream.read_exact(&mut vec![0; rest]).expect("the rest of it");
    for round in 1..=1000_u16 {
        stream.write_all(&[43, 0, 1, 0]).expect("room");
        let mut reply = [0; 32];
        stream.read_exact(&mut reply).expect("a reply");
        assert_eq!((reply[0], u16::from_le_bytes([reply[2], reply[3]])), (1, round));
    }
}

#[test]
fn an_x_server_and_its_clients() {
    if !installed("Xvfb") {
        return;
    }
    let stage = Stage::new("xvfb");
    let mut command = stage.under("auto", "Xvfb");
    command.args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "320x240x24"]);
    let server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut server = server.expect("it starts");
    let mut display = String::new();
    let said = server.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut display).expect("its display");
    std::thread::scope(|scope| {
        let clients = [(); 3].map(|()| scope.spawn(|| asks(display.trim())));
        for client in clients {
            client.join().expect("it was answered");
        }
    });
    // SAFETY: a child that no thread has waited for; `timeout` forwards the signal.
    assert_eq!(unsafe { libc::kill(server.id() as i32, libc::SIGTERM) }, 0);
    server.wait().expect("it ends");
    let loops = stage.loops();
    assert!(loops.iter().any(|row| row.baton && row.count(Count::Waits) > 100), "{loops:?}");
}

#[test]
fn an_asyncio_loop_that_tells_its_next_timer() {
    if !installed("python3") {
        return;
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/asyncio_hook.py");
    let ticks = |output: std::process::Output| {
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(said.starts_with("100 ticks, "), "{said}");
    };
    ticks(succeeds(plain("python3").arg(example)));
    // A call that is cancelled long before it is due is freed early.
    let cancels = "import sys; from runpy import run_path; \
                   loop = run_path(sys.argv[1])['CooperativeLoop'](); \
                   [loop.call_later(60, print).cancel() for _ in range(9999)]; \
                   loop.call_soon(loop.stop); loop.run_forever(); \
                   assert len(loop._timers) < 100, len(loop._timers)";
    succeeds(plain("python3").args(["-c", cancels, example]));
    let stage = Stage::new("hook");
    ticks(succeeds(stage.under("auto", "python3").arg(example)));
    let loops = stage.loops();
    let told = |row: &&antiphon_record::coop::LoopRow| row.count(Count::Told) >= 90;
    // The first wait or two happen before the loop is found.
    let row = loops.iter().find(told).unwrap_or_else(|| panic!("it tells nothing: {loops:?}"));
    assert!(row.count(Count::Due) >= 90 && row.count(Count::Zero) >= row.count(Count::Told));
}
