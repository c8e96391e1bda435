//! Fibers are refused if another fiber runtime has installed its hooks in the process.

use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use antiphon_linux::fiber::{Hooks, install};

static OTHERS: Hooks =
    Hooks { current: || None, suspend: |_, _| {}, resume: |_| {}, give_way: || false };

#[test]
fn beside_another_runtime_there_are_none_and_plain_pools_are() {
    install(&OTHERS).expect("the first");
    // SAFETY: nothing is run.
    let refused = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build();
    let told = refused.expect_err("there are others").to_string();
    assert!(told.contains("another fiber runtime"), "{told}");
    assert_eq!(Pool::new(1).expect("a pool").spawn(|| 42).join().expect("no panic"), 42);
}
