//! Sleeping on words: many threads sleep on one word, each in a place, and one call wakes the
//! sleepers of some places.
//!
//! ```text
//!   wait:  call │ load │ bucket: compare, queue │ the rest of park │ asleep
//!   wake:  call │        bucket: choose         │ the rest of wake │ the rest of wake │ …
//! ```
//!
//! This models the futex of Linux: each word has a bucket, with a lock and its sleepers in order of
//! arrival. Threads get the lock in order of arrival, and a holder can't lose its core. Work under
//! the lock takes effect in the instant of the acquisition, and its cost comes afterwards: the line
//! of the lock comes from its last holder, and a waker walks the queue, including sleepers in other
//! places. The kernel's record of a sleeper is a line, at first in the sleeper's cache, then in
//! those of all wakers that have walked over it.
//!
//! - WORD-1: a thread that has changed the word and then chooses finds all sleepers that have not
//!   seen the change: both the comparison and the choice are under the lock.
//! - WORD-2: a chosen sleeper is in no queue, whether it already sleeps or not, and a thread that
//!   is in no queue does not fall asleep. So no sleeper is chosen twice, or gives up after it was
//!   chosen.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::thread::panicking;

use antiphon_platform::Parked;

use crate::line::LINE;
use crate::lines::AddressHasher;
use crate::sleep::{Sleep, SleepsOn, sleep};
use crate::step::{call, hold, step};
use crate::word::{self, Native};
use crate::world::{World, suspend, with};

/// The buckets, by the address of the word. Only looked up, never iterated.
#[derive(Default)]
pub(crate) struct Words {
    buckets: HashMap<usize, Bucket, BuildHasherDefault<AddressHasher>>,
    /// Number of sleeps so far.
    sleeps: u64,
}

#[derive(Default)]
struct Bucket {
    queue: VecDeque<Sleeper>,
    locked: bool,
    /// The threads that wait for the lock, in order of arrival.
    waiting: VecDeque<usize>,
    /// The core whose cache has the lock's line.
    core: Option<u32>,
}

struct Sleeper {
    thread: usize,
    on: SleepsOn,
    place: u32,
    /// The cores whose caches have its line.
    cores: Vec<u32>,
}

/// See [`WordWaits::wait_on`](antiphon_platform::WordWaits::wait_on), and
/// [`SharedWait::wait_shared`](antiphon_platform::SharedWait::wait_shared).
pub(crate) fn wait(word: &impl Native, low: u32, place: u32, deadline_ns: Option<u64>) -> Parked {
    let address = word.address();
    call(|world| world.machine.call_ns);
    // Fetches the line; the raw load of the word is under the lock.
    word::load(word);
    let queued = locked(address, |world| {
        let holds = world.peek(word) as u32 == low;
        (holds.then(|| world.queue(address, place)), 0)
    });
    let Some(on) = queued else { return Parked::Woken };
    let rest_ns = |world: &mut World| world.machine.park_ns.saturating_sub(world.machine.call_ns);
    sleep(Sleep { on, deadline_ns }, rest_ns, || with(|world| !world.is_queued(address, on)));
    if with(|world| world.leave(address, on)) { Parked::TimedOut } else { Parked::Woken }
}

/// See [`WordWaits::wake_on`](antiphon_platform::WordWaits::wake_on).
pub(crate) fn wake(address: usize, places: u32, count: u32) -> u32 {
    if count == 0 {
        return 0;
    }
    call(|world| world.machine.call_ns);
    let chosen = locked(address, |world| world.choose(address, places, count));
    for &(thread, on) in &chosen {
        step(|world| world.machine.wake_ns.saturating_sub(world.machine.call_ns));
        let send_ns = with(|world| world.wake_from(thread, on));
        if send_ns > 0 {
            step(|_| send_ns);
        }
    }
    chosen.len() as u32
}

/// Runs `act` under the lock of a bucket. It returns its cost, in addition to that of the lock.
fn locked<R>(address: usize, act: impl FnOnce(&mut World) -> (R, u64)) -> R {
    if !panicking() && !with(|world| world.lock(address)) {
        suspend();
    }
    let (done, ns) = with(|world| {
        let lock_ns = world.lock_ns(address);
        let (done, ns) = act(world);
        (done, lock_ns + ns)
    });
    hold(ns);
    with(|world| world.unlock(address));
    done
}

impl World {
    fn bucket(&mut self, address: usize) -> &mut Bucket {
        self.words.buckets.entry(address).or_default()
    }

    /// Returns whether the running thread has got the lock. If not, it must suspend, and has the
    /// lock when it runs again.
    #[must_use]
    fn lock(&mut self, address: usize) -> bool {
        let me = self.me();
        let bucket = self.bucket(address);
        if bucket.locked {
            bucket.waiting.push_back(me);
            return false;
        }
        bucket.locked = true;
        true
    }

    fn unlock(&mut self, address: usize) {
        let bucket = self.bucket(address);
        let next = bucket.waiting.pop_front();
        bucket.locked = next.is_some();
        if let Some(next) = next {
            self.resume_at(next, self.now_ns);
        }
    }

    /// The cost to the running thread of getting the lock's line.
    fn lock_ns(&mut self, address: usize) -> u64 {
        let core = self.my_core();
        match self.bucket(address).core.replace(core) {
            Some(other) if other != core => self.machine.transfer_ns(other, core),
            _ => self.machine.rmw_ns,
        }
    }

    /// Puts the running thread on the queue of a word; returns the event that ends its sleep.
    fn queue(&mut self, address: usize, place: u32) -> SleepsOn {
        let (thread, core) = (self.me(), self.my_core());
        self.words.sleeps += 1;
        let (line, offset) = (self.label(address), (address % LINE) as u8);
        let on = SleepsOn::Word { line, offset, number: self.words.sleeps };
        self.bucket(address).queue.push_back(Sleeper { thread, on, place, cores: vec![core] });
        on
    }

    fn is_queued(&mut self, address: usize, on: SleepsOn) -> bool {
        self.bucket(address).queue.iter().any(|sleeper| sleeper.on == on)
    }

    /// Takes a sleeper off its queue. Returns `false` if it was chosen.
    fn leave(&mut self, address: usize, on: SleepsOn) -> bool {
        let queue = &mut self.bucket(address).queue;
        let place = queue.iter().position(|sleeper| sleeper.on == on);
        place.and_then(|place| queue.remove(place)).is_some()
    }

    /// Takes up to `count` sleepers of these places off the queue of a word; also returns the cost
    /// of walking to the last of them, or to the end.
    fn choose(&mut self, address: usize, places: u32, count: u32) -> (Vec<(usize, SleepsOn)>, u64) {
        let core = self.my_core();
        let mut queue = std::mem::take(&mut self.bucket(address).queue);
        let (mut chosen, mut ns) = (Vec::new(), 0);
        queue.retain_mut(|sleeper| {
            if chosen.len() == count as usize {
                return true;
            }
            ns += self.line_ns(&mut sleeper.cores, core);
            let stays = places & 1 << sleeper.place == 0;
            if !stays {
                chosen.push((sleeper.thread, sleeper.on));
            }
            stays
        });
        self.bucket(address).queue = queue;
        (chosen, ns)
    }

    /// The cost to a core of reading a line that others have in their caches.
    fn line_ns(&self, cores: &mut Vec<u32>, core: u32) -> u64 {
        if cores.contains(&core) {
            return self.machine.hit_ns;
        }
        let nearest = cores.iter().map(|&other| self.machine.transfer_ns(other, core)).min();
        cores.push(core);
        nearest.unwrap_or(self.machine.hit_ns)
    }
}
