//! Sends a file to a server whose disk is slow, and then fast. A slow last stage slows down the
//! stages before it, one by one, and the sender by its TCP window, so that no more is in memory
//! than there is room for.
//!
//! `cargo run --release -p antiphon --example upload -- [FILE]`

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, net, process};

use antiphon::net::TcpListener;
use antiphon::pool::{Pool, blocking};
use antiphon::stage::{Inlet, Stage, Stats};
use antiphon::{Mutex, fiber};

const BLOCK: usize = 64 << 10;
/// The speed of the disk at first, and how long it is slow.
const SLOW_BYTES_PER_S: u64 = 4 << 20;
const SLOW_FOR: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(250);

/// The progress of the upload, in bytes.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    received: AtomicU64,
    written: AtomicU64,
    /// The window of the sender, as last advertised by the receiver's system.
    window: AtomicU64,
    over: AtomicBool,
}

fn main() {
    let file = env::args_os().nth(1).map_or_else(env::current_exe, |file| Ok(PathBuf::from(file)));
    if let Err(error) = file.and_then(|file| upload(&file)) {
        eprintln!("upload: {error}");
        process::exit(1);
    }
}

fn upload(file: &Path) -> io::Result<()> {
    let content = fs::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let target = env::temp_dir().join(format!("antiphon-upload-{}", process::id()));
    let progress = Arc::new(Progress::default());
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(2).fibers(4 * fiber::STACK_BYTES) }.build()?;
    let pool = Arc::new(pool);

    let (write, writes) = writer(&pool, File::create(&target)?, &progress);
    // The work of a server on the blocks: here, a sum.
    let sum = Arc::new(AtomicU64::new(0));
    let sums = sum.clone();
    let check = Stage::builder("check").room(8).width(1).on(&pool, move |block: Vec<u8>| {
        sums.fetch_add(added_up(&block), Relaxed);
        write.send(block);
    });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = {
        let (inlet, progress) = (check.0, progress.clone());
        pool.spawn(move || receive(&listener, &inlet, &progress))
    };
    let stages = [check.1, writes];
    thread::scope(|threads| {
        let sender = threads.spawn(|| {
            let sent = send(net::TcpStream::connect(address)?, &content, &progress);
            progress.over.store(sent.is_err(), Relaxed);
            sent
        });
        report(&progress, &stages, content.len() as u64);
        sender.join().expect("no panic")
    })?;
    server.join().expect("no panic")?;
    for stage in stages {
        stage.join().map_err(|_| io::Error::other("a stage has panicked"))?;
    }
    let same = fs::read(&target)? == content && sum.load(Relaxed) == added_up(&content);
    fs::remove_file(&target)?;
    println!("what is on the disk is {}what was sent", if same { "" } else { "NOT " });
    if same { Ok(()) } else { Err(io::Error::other("the copy differs")) }
}

/// Starts the stage that writes blocks, one at a time and in order. A sleep simulates the slow
/// disk.
fn writer(pool: &Arc<Pool>, file: File, progress: &Arc<Progress>) -> (Inlet<Vec<u8>>, Stage) {
    let (file, progress, began) = (Mutex::new(file), progress.clone(), Instant::now());
    Stage::builder("write").room(8).width(1).on(pool, move |block: Vec<u8>| {
        if began.elapsed() < SLOW_FOR {
            let ns = block.len() as u64 * 1_000_000_000 / SLOW_BYTES_PER_S;
            fiber::sleep(Duration::from_nanos(ns));
        }
        let written = blocking(|| file.lock().write_all(&block));
        if let Err(error) = written {
            // The item has panicked, and the stage's `join` returns the panic.
            panic!("not written: {error}");
        }
        progress.written.fetch_add(block.len() as u64, Relaxed);
    })
}

/// Reads blocks, and passes them on. If there is no room, it waits, and reads no more.
fn receive(listener: &TcpListener, check: &Inlet<Vec<u8>>, progress: &Progress) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        let read = (&mut stream).take(BLOCK as u64).read_to_end(&mut block)?;
        if read == 0 {
            return Ok(());
        }
        progress.received.fetch_add(read as u64, Relaxed);
        check.send(block);
    }
}

fn send(mut stream: net::TcpStream, content: &[u8], progress: &Progress) -> io::Result<()> {
    for block in content.chunks(BLOCK) {
        stream.write_all(block)?;
        progress.sent.fetch_add(block.len() as u64, Relaxed);
        progress.window.store(window(&stream)?, Relaxed);
    }
    stream.shutdown(net::Shutdown::Write)?;
    // Bytes that are still on their way count in the window.
    while progress.received.load(Relaxed) < content.len() as u64 {
        progress.window.store(window(&stream)?, Relaxed);
        thread::sleep(LOOK / 10);
    }
    Ok(())
}

/// Returns the number of bytes that the other side has room for: `tcpi_snd_wnd` of `struct
/// tcp_info` in `linux/tcp.h`, from Linux 5.4 on; 0 before.
fn window(stream: &net::TcpStream) -> io::Result<u64> {
    const AT: usize = 228;
    let mut info = [0_u8; 256];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: `info` and `length` are writable, and `length` is the size of `info`.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    let window = info[AT..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    Ok(window.into())
}

/// Prints one line each `LOOK`, until all is written.
fn report(progress: &Progress, stages: &[Stage; 2], all: u64) {
    println!("   time     sent received  written   inside  window  check  write");
    let began = Instant::now();
    loop {
        let [sent, received, written, window] =
            [&progress.sent, &progress.received, &progress.written, &progress.window]
                .map(|count| count.load(Relaxed));
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let [check, write] = stages.each_ref().map(|stage| {
            let Stats { waiting, room, .. } = stage.stats();
            format!("{waiting}/{room}")
        });
        println!(
            "{:5.2} s {:5.1} MB {:5.1} MB {:5.1} MB {:5.1} MB {:4} KB {check:>6} {write:>6}",
            began.elapsed().as_secs_f64(),
            mb(sent),
            mb(received),
            mb(written),
            mb(sent - written.min(sent)),
            window >> 10,
        );
        if written == all || progress.over.load(Relaxed) {
            return;
        }
        thread::sleep(LOOK);
    }
}

fn added_up(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}
