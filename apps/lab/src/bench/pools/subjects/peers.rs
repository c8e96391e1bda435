//! The peers in Rust, each as its users use it. One of them is a loop without any runtime.

use std::thread;

use async_executor::Executor;
use crossbeam_channel::{Receiver, Sender, bounded};
use futures_lite::future;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Runtime};

use super::{Setup, Visitor, leak};
use crate::bench::pools::policies::unknown;
use crate::bench::pools::runner::{Kind, Runner};

/// Visits a peer.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    let &Setup { workers, capacity, .. } = setup;
    let none = &|| None;
    Ok(match name {
        "loop" => visitor.visit(&AtOnce, none),
        "rayon" => visitor.visit(leak(Rayon(threads(workers)?)), none),
        "rayon-fifo" => visitor.visit(leak(RayonFifo(threads(workers)?)), none),
        "smol" => visitor.visit(smol(workers)?, none),
        "tokio" => {
            let runtime = Builder::new_multi_thread().worker_threads(workers).build();
            visitor.visit(leak(runtime.map_err(|error| error.to_string())?), none)
        }
        "channel" => visitor.visit(channel(workers, capacity)?, none),
        _ => return Err(unknown(name)),
    })
}

/// Runs tasks at once, without a runtime.
struct AtOnce;

impl Runner for AtOnce {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        work();
    }

    fn repeat(&'static self, _: Kind, mut step: impl FnMut() -> bool + Send + 'static) {
        while step() {}
    }
}

struct Rayon(ThreadPool);
struct RayonFifo(ThreadPool);

fn threads(workers: usize) -> Result<ThreadPool, String> {
    ThreadPoolBuilder::new().num_threads(workers).build().map_err(|error| error.to_string())
}

impl Runner for Rayon {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        self.0.spawn(work);
    }
}

impl Runner for RayonFifo {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        self.0.spawn_fifo(work);
    }
}

/// smol's executor on threads, as in its documentation.
fn smol(workers: usize) -> Result<&'static Executor<'static>, String> {
    let executor = leak(Executor::new());
    for _ in 0..workers {
        let run = || future::block_on(executor.run(future::pending::<()>()));
        thread::Builder::new().spawn(run).map_err(|error| error.to_string())?;
    }
    Ok(executor)
}

impl Runner for Executor<'static> {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        self.spawn(async { work() }).detach();
    }
}

impl Runner for Runtime {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.spawn(async { work() }));
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// A bounded channel shared by all; a spawner that finds it full runs the task itself.
struct Channel(Sender<Work>);

fn channel(workers: usize, capacity: usize) -> Result<&'static Channel, String> {
    let (sender, receiver) = bounded(capacity);
    for _ in 0..workers {
        let receiver: Receiver<Work> = receiver.clone();
        let run = move || receiver.iter().for_each(|work| work());
        thread::Builder::new().spawn(run).map_err(|error| error.to_string())?;
    }
    Ok(leak(Channel(sender)))
}

impl Runner for Channel {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        if let Err(full) = self.0.try_send(Box::new(work)) {
            full.into_inner()();
        }
    }
}
