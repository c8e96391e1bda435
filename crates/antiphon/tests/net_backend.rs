//! The choice between `epoll` and `io_uring`, in child processes that lack some system calls.

use std::env;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use antiphon::Event;
use antiphon::fiber::STACK_BYTES;
use antiphon::net::{Backend, TcpListener, TcpStream, backend};
use antiphon::pool::Pool;

/// Set in a child: the system call that it may not use.
const CHILD: &str = "ANTIPHON_TEST_NET_BACKEND";
const RINGS: &str = "ANTIPHON_IO_URING";

/// Lets fibers echo, and returns whether this process has a ring meanwhile.
fn serves() -> bool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let waited = Arc::new(Event::new());
    let waits = waited.clone();
    let server = pool.spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut buffer = [0; 8];
        // Waits at least once, however soon the other side answers.
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
        let error = (&stream).read(&mut buffer).expect_err("nobody writes");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        stream.set_read_timeout(None).expect("no time");
        waits.set();
        while let read @ 1.. = (&stream).read(&mut buffer).expect("bytes") {
            (&stream).write_all(&buffer[..read]).expect("room");
        }
    });
    let mut client = TcpStream::connect(address).expect("it listens");
    waited.wait();
    for turn in 0..20_u8 {
        client.write_all(&[turn; 8]).expect("room");
        let mut back = [0; 8];
        client.read_exact(&mut back).expect("an echo");
        assert_eq!(back, [turn; 8]);
    }
    let has_rings = has_rings();
    drop(client);
    server.join().expect("no panic");
    has_rings
}

/// Returns whether this process has a ring.
fn has_rings() -> bool {
    fs::read_dir("/proc/self/fd").expect("files").any(|file| {
        let file = fs::read_link(file.expect("a file").path());
        file.is_ok_and(|of| of.to_string_lossy().contains("io_uring"))
    })
}

/// Makes the kernel refuse this call to this thread, and to threads that it starts.
fn refuse(call: libc::c_long) {
    let op = |code: u32, jt, k| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let load = op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let mut skip = op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, call as u32);
    skip.jf = 1;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = [
        load,
        skip,
        op(libc::BPF_RET | libc::BPF_K, 0, refused),
        op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter has that length, and outlives the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter);
        assert_eq!(set, 0);
    }
}

/// Runs this test in a child process that may not make that call.
fn child(test: &str, without: &str, rings: Option<&str>) {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["--exact", test]).env(CHILD, without).env_remove(RINGS);
    if let Some(rings) = rings {
        command.env(RINGS, rings);
    }
    let output = command.output().expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_is_said_is_what_is_used() {
    let is_ring = backend() == Backend::IoUring;
    assert_eq!(backend().to_string(), if is_ring { "io_uring" } else { "epoll" });
    assert!(cfg!(feature = "io_uring") || !is_ring);
    assert_eq!(serves(), is_ring);
}

#[test]
fn a_process_that_is_told_to_uses_no_rings() {
    if env::var_os(CHILD).is_none() {
        return child("a_process_that_is_told_to_uses_no_rings", "nothing", Some("0"));
    }
    assert_eq!((backend(), serves()), (Backend::Epoll, false));
}

/// Rings are refused as containers do.
#[test]
fn a_process_that_may_have_no_rings_goes_without() {
    let Some(without) = env::var_os(CHILD) else {
        for without in ["setup", "enter"] {
            child("a_process_that_may_have_no_rings_goes_without", without, None);
        }
        return;
    };
    refuse(if without == "setup" { libc::SYS_io_uring_setup } else { libc::SYS_io_uring_enter });
    assert_eq!((backend(), serves()), (Backend::Epoll, false));
}

/// The process already has a ring, and its next thread gets none.
#[test]
fn a_thread_that_may_have_no_ring_goes_without() {
    if env::var_os(CHILD).is_none() {
        return child("a_thread_that_may_have_no_ring_goes_without", "later", None);
    }
    assert_eq!(serves(), backend() == Backend::IoUring);
    // Wait until the thread with the ring has ended.
    while has_rings() {
        thread::yield_now();
    }
    refuse(libc::SYS_io_uring_setup);
    assert!(!serves());
}
