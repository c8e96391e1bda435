//! Made-up kernels: whole, broken, and cut off.

use super::parse::{FUNC, FUNC_PROTO, PTR, STRUCT};
use super::*;

/// BTF of functions, each with a name and whether it takes the hidden argument.
fn kernel(functions: &[(&str, bool)]) -> Vec<u8> {
    let mut strings = vec![0_u8];
    let mut name = |text: &str| {
        let at = strings.len() as u32;
        strings.extend(text.bytes().chain([0]));
        at
    };
    let one = |name: u32, kind: u8, members: u32, of: u32| {
        [name, u32::from(kind) << 24 | members, of].map(u32::to_le_bytes).concat()
    };
    // 1: the structure; 2: a pointer to it; 3: `f(u64)`; 4: `f(u64, aux)`; then an integer.
    let mut types = one(name(HIDDEN), STRUCT, 0, 8);
    types.extend(one(0, PTR, 0, 1));
    types.extend(one(0, FUNC_PROTO, 1, 0));
    types.extend([name("argument"), 5].map(u32::to_le_bytes).concat());
    types.extend(one(0, FUNC_PROTO, 2, 0));
    types.extend([name("argument"), 5, name("aux"), 2].map(u32::to_le_bytes).concat());
    types.extend(one(name("u64"), 1, 0, 8));
    types.extend(64_u32.to_le_bytes());
    types.extend(one(name("sched_ext_ops"), STRUCT, 0, 8));
    for (text, hidden) in functions {
        types.extend(one(name(text), FUNC, 0, if *hidden { 4 } else { 3 }));
    }
    let (types_length, strings_length) = (types.len() as u32, strings.len() as u32);
    let head = [0x1_eb9f, 24, 0, types_length, types_length, strings_length];
    [head.map(u32::to_le_bytes).concat(), types, strings].concat()
}

#[test]
fn a_function_with_the_hidden_argument_is_found_by_name() {
    let bytes = kernel(&[
        ("scx_bpf_kick_cpu", true),
        ("scx_bpf_now", false),
        ("__scx_bpf_dsq_insert_vtime", true),
        // The twin has it by right, and what no scheduler calls does not matter.
        ("scx_bpf_now_impl", true),
        ("bpf_wq_start", true),
    ]);
    let kernel = Kernel::read(&bytes).unwrap();
    assert_eq!(kernel.broken(), ["__scx_bpf_dsq_insert_vtime", "scx_bpf_kick_cpu"]);
    assert!(kernel.has("scx_bpf_now") && !kernel.has("scx_bpf_task_cpu"));
    assert!(kernel.has_sched_ext());
}

#[test]
fn a_whole_kernel_has_no_broken_function() {
    let bytes = kernel(&[("scx_bpf_kick_cpu", false), ("scx_bpf_kick_cpu_impl", true)]);
    assert_eq!(Kernel::read(&bytes).unwrap().broken(), Vec::<&str>::new());
}

#[test]
fn no_prefix_of_btf_is_accepted_or_panics() {
    let bytes = kernel(&[("scx_bpf_now", false)]);
    for length in 0..bytes.len() {
        assert!(Kernel::read(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn damaged_bytes_do_not_panic() {
    let bytes = kernel(&[("scx_bpf_now", true)]);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        if let Ok(kernel) = Kernel::read(&damaged) {
            assert!(kernel.broken().len() <= 1);
        }
    }
}
