//! Introspection in the child of a fork. In a separate process, because it forks.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use antiphon::look;
use antiphon::pool::Pool;

fn told(process: u32) -> Option<String> {
    let address = look::address(process).expect("the process is there");
    let mut socket = UnixStream::connect_addr(&address).ok()?;
    socket.write_all(b"antiphon-look 1\n").ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// A child does not show its parent's pools or answer for them, but shows its own.
#[test]
fn a_child_shows_its_own_pools() {
    look::open().expect("a socket");
    let _pool = Pool::builder().threads(1).name("parents").build().expect("a thread");
    let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
    // SAFETY: the child builds a pool, which the C library and ours allow, and ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut step = [0];
        let _ = theirs.read_exact(&mut step);
        let pool = Pool::builder().threads(1).name("childs").build();
        let opened = pool.is_ok() && look::open().is_ok();
        let _ = theirs.write_all(&[u8::from(opened)]);
        let _ = theirs.read_exact(&mut step);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) }
    }
    assert!(child > 0, "a child");
    let child_id = u32::try_from(child).expect("a process");
    assert_eq!(told(child_id), None);
    ours.write_all(b"1").expect("it reads");
    let mut opened = [0];
    ours.read_exact(&mut opened).expect("it answers");
    let (childs, parents) = (told(child_id), told(std::process::id()));
    ours.write_all(b"2").expect("it reads");
    // SAFETY: a child of ours that was not waited for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(opened, [1]);
    let (childs, parents) = (childs.expect("an answer"), parents.expect("an answer"));
    assert!(childs.contains(&format!("\"pid\":{child},")) && childs.contains("childs"), "{childs}");
    assert!(!childs.contains("parents"), "{childs}");
    assert!(parents.contains("parents") && !parents.contains("childs"), "{parents}");
}
