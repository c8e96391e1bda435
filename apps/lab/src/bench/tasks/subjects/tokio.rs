//! Tokio's runtime of several threads, with a handle for each task.

use std::io;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime as Threads};
use tokio::sync::mpsc;

use super::{Look, Meeting, Runtime, park, parked};

/// The runtime.
pub struct Tokio(Threads);

impl Tokio {
    pub fn new(workers: usize) -> io::Result<Self> {
        Builder::new_multi_thread().worker_threads(workers).build().map(Self)
    }
}

impl Runtime for Tokio {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        let main = self.0.spawn(async move {
            let begun = Instant::now();
            for _ in 0..times {
                let tasks: Vec<_> = (0..batch).map(|_| tokio::spawn(async {})).collect();
                for task in tasks {
                    task.await.expect("it does nothing");
                }
            }
            begun.elapsed()
        });
        self.0.block_on(main).expect("none of its tasks panics")
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        // A runtime whose only thread is the caller, which does not run the tasks.
        let alone = Builder::new_current_thread().build().expect("a runtime without a driver");
        let mut spawned = Vec::with_capacity(tasks);
        look(false);
        spawned.extend((0..tasks).map(|_| alone.spawn(async {})));
        look(true);
    }

    fn yields(&self, tasks: usize, each: usize) -> Duration {
        let begun = Instant::now();
        let yields = || async move {
            for _ in 0..each {
                tokio::task::yield_now().await;
            }
        };
        let all: Vec<_> = (0..tasks).map(|_| self.0.spawn(yields())).collect();
        self.0.block_on(async {
            for task in all {
                task.await.expect("it does nothing");
            }
        });
        begun.elapsed()
    }

    fn channel(&self, room: usize, messages: usize, meeting: Meeting) -> Duration {
        let begun = Instant::now();
        let (sender, mut receiver) = mpsc::channel(room);
        let first = meeting.clone();
        let sends = self.0.spawn(async move {
            first.come();
            for number in 0..messages {
                sender.send(number).await.expect("a receiver");
            }
        });
        let receives = self.0.spawn(async move {
            meeting.come();
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            received
        });
        self.0.block_on(async {
            sends.await.expect("it has a receiver");
            assert_eq!(receives.await.ok(), Some(messages));
        });
        begun.elapsed()
    }

    fn select(&self, room: usize, messages: usize) -> Duration {
        let begun = Instant::now();
        let [(one, mut from_one), (other, mut from_other)] = [0, 1].map(|_| mpsc::channel(room));
        let sends = [one, other].map(|sender| {
            self.0.spawn(async move {
                for number in 0..messages / 2 {
                    sender.send(number).await.expect("a receiver");
                }
            })
        });
        let receives = self.0.spawn(async move {
            let mut received = 0;
            while received < messages {
                let number = tokio::select! {
                    number = from_one.recv() => number,
                    number = from_other.recv() => number,
                };
                received += usize::from(number.is_some());
            }
        });
        self.0.block_on(async {
            receives.await.expect("it has all");
            for sends in sends {
                sends.await.expect("it has a receiver");
            }
        });
        begun.elapsed()
    }

    fn parked(&self, tasks: usize, look: Look<'_>) {
        park(tasks, look, |here| drop(self.0.spawn(parked(here))));
    }
}
