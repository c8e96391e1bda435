//! Fibers beside Tokio: a fiber waits for Tokio's futures, a Tokio task waits for fibers, and both
//! send through one channel. Measures the cost of each.
//!
//! `cargo run --release -p antiphon --example tokio`

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon::cancel::Token;
use antiphon::channel::bounded;
use antiphon::fiber::{self, block_on};
use antiphon::pool::Pool;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

/// Performs an operation many times, and waits until all are done.
type Measured = fn(&Runtime, &Pool);

/// Number of messages in each measurement.
const MESSAGES: u32 = 20_000;
const ROUNDS: usize = 9;

/// Polls the future within the runtime. The guard of `enter` belongs to the thread, so it is
/// dropped before the fiber is suspended.
async fn within<F: Future>(handle: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _within = handle.enter();
        future.as_mut().poll(context)
    })
    .await
}

/// The work of a Tokio service.
async fn look_up(number: u32) -> u32 {
    tokio::time::sleep(Duration::from_millis(1)).await;
    number * number
}

fn main() -> io::Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
    let pool = Arc::new(pool);

    // A fiber that waits for Tokio: the future runs there, and the fiber waits for its handle.
    let handle = runtime.handle().clone();
    let spawned = pool.spawn(move || block_on(handle.spawn(look_up(6))).expect("no panic"));
    // Otherwise the future is polled here, in the fiber, and may borrow.
    let handle = runtime.handle().clone();
    let polled = pool.spawn(move || block_on(within(&handle, look_up(7))));
    println!("fibers that wait for Tokio: {:?}, {:?}", spawned.join().ok(), polled.join().ok());

    // A Tokio task that waits for a fiber, and gives up: the fiber's token is then cancelled.
    let work = fiber_behind(pool.clone(), |token| token.sleep(Duration::from_secs(3600)));
    let gave_up = runtime.block_on(async { tokio::time::timeout(MS, work).await.is_err() });
    println!("a task that waits for a fiber: gave up after {MS:?}: {gave_up}");

    println!("\n{MESSAGES} each, medians of {ROUNDS}:");
    let rows: [(&str, Measured); 5] = [
        ("a future of Tokio's, spawned and awaited by a fiber", spawned_by_fiber),
        ("a fiber, spawned and awaited by a task of Tokio's", spawned_by_task),
        ("a message from a fiber to a task, room for 128", fiber_to_task),
        ("a message from a task to a fiber, room for 128", task_to_fiber),
        ("the same between threads of Tokio's, tokio::sync::mpsc", task_to_task),
    ];
    for (what, run) in rows {
        let mut ns: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                run(&runtime, &pool);
                begun.elapsed().as_nanos() / u128::from(MESSAGES)
            })
            .collect();
        ns.sort_unstable();
        println!("{:>8} ns  {what}", ns[ROUNDS / 2]);
    }
    Ok(())
}

const MS: Duration = Duration::from_millis(5);

/// Runs work in a fiber, as a future. If it is dropped before it is ready, the work's token is
/// cancelled.
async fn fiber_behind<T, F>(pool: Arc<Pool>, work: F) -> T
where
    T: Send + 'static,
    F: FnOnce(&Token) -> T + Send + 'static,
{
    let token = Token::new();
    let guard = token.guard();
    let returned = pool.spawn(move || work(&token)).await;
    guard.disarm();
    returned.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn spawned_by_fiber(runtime: &Runtime, pool: &Pool) {
    let handle = runtime.handle().clone();
    let work = move || {
        for number in 0..MESSAGES {
            assert_eq!(block_on(handle.spawn(async move { number })).ok(), Some(number));
        }
    };
    pool.spawn(work).join().expect("no panic");
}

fn spawned_by_task(runtime: &Runtime, pool: &Pool) {
    runtime.block_on(async {
        for number in 0..MESSAGES {
            assert_eq!(pool.spawn(move || number).await.ok(), Some(number));
        }
    });
}

fn fiber_to_task(runtime: &Runtime, pool: &Pool) {
    let (sender, receiver) = bounded(128);
    let sends = pool.spawn(move || (0..MESSAGES).all(|number| sender.send(number).is_ok()));
    let receives = runtime.spawn(async move { while receiver.recv_async().await.is_ok() {} });
    runtime.block_on(receives).expect("no panic");
    assert!(sends.join().expect("no panic"));
}

fn task_to_fiber(runtime: &Runtime, pool: &Pool) {
    let (sender, receiver) = bounded(128);
    runtime.spawn(async move {
        for number in 0..MESSAGES {
            sender.send_async(number).await.expect("a receiver");
        }
    });
    assert_eq!(pool.spawn(move || receiver.iter().count()).join().ok(), Some(MESSAGES as usize));
}

fn task_to_task(runtime: &Runtime, _: &Pool) {
    let (sender, mut receiver) = mpsc::channel(128);
    let receives = runtime.spawn(async move { while receiver.recv().await.is_some() {} });
    // The sender runs on this thread.
    runtime.block_on(async move {
        for number in 0..MESSAGES {
            sender.send(number).await.expect("a receiver");
        }
        drop(sender);
        receives.await.expect("no panic");
    });
}
