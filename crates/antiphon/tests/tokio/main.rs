//! Fibers beside Tokio: futures that fibers wait for, fibers that futures wait for, and sources
//! that both wait for.

mod awaited;
mod block_on;

use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use tokio::runtime::{Builder, Runtime};

fn fibers(threads: usize) -> Pool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) };
    builder.build().expect("fibers")
}

fn tokio(threads: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).enable_time().build().expect("a runtime")
}
