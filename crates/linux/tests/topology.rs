//! Tests that the socket of a waiter is queried, not computed: nodes need not be contiguous.
//!
//! Replacements for a function of the C library and a file of `/sys` pretend a machine with two
//! nodes whose CPUs alternate, as hyper-threads and dies do on many machines.

mod support;

use std::ffi::{CString, c_int, c_uint};
use std::io::Write;
use std::mem;
use std::ptr;

use antiphon_linux::Linux;
use antiphon_platform::Topology as _;
use support::{FORKS, in_child};

/// The node of a CPU on the pretended machine: 5 and 3 in turn.
fn node_of(cpu: u32) -> u32 {
    if cpu.is_multiple_of(2) { 5 } else { 3 }
}

/// The C library's function of this name, as the crate under test finds it.
// SAFETY: it has the signature and the behaviour of the C library's function.
#[unsafe(no_mangle)]
extern "C" fn getcpu(cpu: *mut c_uint, node: *mut c_uint) -> c_int {
    // SAFETY: takes nothing.
    let here = unsafe { libc::sched_getcpu() };
    let Ok(here) = u32::try_from(here) else { return -1 };
    // SAFETY: the caller's own words.
    unsafe {
        *cpu = here;
        *node = node_of(here);
    }
    0
}

/// Makes `/sys` of this process say that the nodes 3 and 5 have CPUs. Needs root, or a kernel that
/// lets any user create a name space.
fn pretend_two_nodes() -> bool {
    const LIST: &str = "/sys/devices/system/node/has_cpu";
    let path = std::env::temp_dir().join(format!("antiphon-nodes-{}", std::process::id()));
    let path = path.display().to_string();
    if std::fs::write(&path, "3,5\n").is_err() {
        return false;
    }
    let (Ok(root), Ok(from), Ok(to)) =
        (CString::new("/"), CString::new(&*path), CString::new(LIST))
    else {
        return false;
    };
    let (null, private) = (ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
    // SAFETY: all strings are zero-terminated and live for the calls.
    let mounted = unsafe {
        (libc::unshare(libc::CLONE_NEWNS) == 0
            || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0)
            && libc::mount(null, root.as_ptr(), null, private, ptr::null()) == 0
            && libc::mount(from.as_ptr(), to.as_ptr(), null, libc::MS_BIND, ptr::null()) == 0
    };
    // The mount keeps the file.
    std::fs::remove_file(&path).is_ok() && mounted
}

/// The CPUs that this process may use.
fn allowed() -> Vec<usize> {
    // SAFETY: zero bits are an empty set, of the given size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        set
    };
    // SAFETY: the set has room for each number.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Moves the calling thread to `cpu`.
fn move_to(cpu: usize) -> bool {
    // SAFETY: as above.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

#[test]
fn a_socket_is_what_the_kernel_says() {
    let fork = FORKS[0].1;
    if !in_child(fork, pretend_two_nodes) {
        // Bypasses the capture of output.
        let said = writeln!(std::io::stderr(), "skipped: no name space to pretend two nodes in");
        return assert!(said.is_ok());
    }
    // In a child that asks for the first time, because the answer is cached.
    assert!(in_child(fork, || {
        pretend_two_nodes()
            && Linux::numa()
            && allowed().into_iter().all(|cpu| {
                let expected = u32::try_from(cpu).map(node_of);
                move_to(cpu) && Ok(Linux::socket().0) == expected
            })
    }));
}
