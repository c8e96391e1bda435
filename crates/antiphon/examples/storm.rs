//! A hundred thousand fibers wait with one token, each with its own child of it or with the token
//! itself. Then the token is cancelled, and each fiber is notified once.
//!
//! `cargo run --release -p antiphon --example storm [FIBERS]`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::cancel::Token;
use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;

fn main() {
    let fibers = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 100_000,
        Some(Ok(fibers)) => fibers,
        Some(Err(error)) => {
            eprintln!("storm: {error}; usage: storm [FIBERS]");
            std::process::exit(2);
        }
    };
    for of_children in [false, true] {
        let what = if of_children { "a child each" } else { "one token" };
        storm(fibers, of_children, what);
    }
}

fn storm(fibers: usize, of_children: bool, what: &str) {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(2).fibers(STACK_BYTES) };
    let pool = builder.build().expect("fibers");
    let token = Token::new();
    let [here, told] = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
    for _ in 0..fibers {
        let own = if of_children { token.child() } else { token.clone() };
        let (here, told) = (here.clone(), told.clone());
        drop(pool.spawn(move || {
            here.fetch_add(1, Relaxed);
            assert!(own.sleep(Duration::from_secs(3600)).is_err());
            told.fetch_add(1, Relaxed);
        }));
    }
    while here.load(Relaxed) < fibers {
        thread::yield_now();
    }
    // The last fibers may only be about to wait.
    thread::sleep(Duration::from_millis(10));
    let begun = Instant::now();
    token.cancel();
    let cancelled = begun.elapsed();
    drop(pool);
    assert_eq!(told.load(Relaxed), fibers);
    println!(
        "{fibers} fibers, {what}: cancelled in {cancelled:.0?}, all ended in {:.0?}",
        begun.elapsed()
    );
}
