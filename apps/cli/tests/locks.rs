//! `locks`.

mod common;

use common::{FRAME, has_keys, json, output};

#[test]
fn each_lock_has_its_name_and_size() {
    let report = json(&["locks", "--json"]);
    has_keys(&report, &FRAME);
    let locks = report["locks"].as_array().expect("a list");
    for lock in locks {
        has_keys(lock, &["name", "bytes", "context_bytes"]);
    }
    let bytes = |name: &str| {
        locks.iter().find(|lock| lock["name"] == name).and_then(|lock| lock["bytes"].as_u64())
    };
    assert_eq!(
        (bytes("shfl-mutex"), bytes("shfl-spin"), bytes("glibc")),
        (Some(8), Some(4), Some(40))
    );
}

#[test]
fn the_table_has_no_colour_in_a_pipe() {
    let output = output(&["locks"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("shfl-mutex") && !text.contains('\x1b'));
}
