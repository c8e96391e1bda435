//! The peers in Rust, each as its users use it; a loop without any runtime is one of them.

use std::thread;

use async_executor::Executor;
use crossbeam_channel::{Receiver, Sender, bounded};
use futures_lite::future;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Runtime};

use super::super::measure::{Figures, Order, Repetition};
use super::super::work::Runner;
use super::unknown;
use crate::bench::rounds::Outcome;

/// Has a peer carry out a repetition.
pub fn with(
    name: &str,
    order: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    let workers = order.cell.workers;
    let none = || None;
    Ok(match name {
        "loop" => repetition.on(&AtOnce, none),
        "rayon" => repetition.on(leak(Rayon(threads(workers)?)), none),
        "rayon-fifo" => repetition.on(leak(RayonFifo(threads(workers)?)), none),
        "smol" => repetition.on(smol(workers)?, none),
        "tokio" => {
            let runtime = Builder::new_multi_thread().worker_threads(workers).build();
            repetition.on(leak(runtime.map_err(|error| error.to_string())?), none)
        }
        "channel" => repetition.on(channel(workers, order.capacity)?, none),
        _ => return Err(unknown(name)),
    })
}

/// The process ends soon.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// No runtime at all.
struct AtOnce;

impl Runner for AtOnce {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        work();
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

/// smol's executor on threads, as its own documentation has it.
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

/// One bounded channel for all; who finds it full runs the task.
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
