//! Active messages, by form: the action notes the time.

use antiphon_metal::kernel::message::direct::{self, DirectAction};
use antiphon_metal::kernel::message::{self, Action, BroadcastAction, slot};

use super::mechanism::{Mechanism, note};

fn note_word(_: usize) {
    note();
}

struct Note;

impl direct::Direct for Note {
    fn run() {
        note();
    }
}

/// An action with a vector of its own.
pub struct Direct(DirectAction);

impl Direct {
    pub fn new() -> Self {
        Self(direct::register::<Note>().expect("a vector"))
    }
}

impl Mechanism for Direct {
    fn unicast(&self, target: u32) {
        direct::post(target, self.0);
    }

    fn broadcast(&self) {
        direct::broadcast(self.0);
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        direct::unregister(self.0).expect("it is registered");
    }
}

/// A slot for each CPU.
pub struct Slot(Action);

impl Slot {
    pub fn new() -> Self {
        Self(message::register(note_word, 0).expect("an action of the kernel"))
    }
}

impl Mechanism for Slot {
    fn unicast(&self, target: u32) {
        slot::post(target, self.0);
    }

    fn broadcast(&self) {
        slot::post_to_others(self.0);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        message::unregister(self.0).expect("it is registered");
    }
}

/// A bit for each action and CPU; broadcasts by counters.
pub struct Bitmap {
    one: Action,
    all: BroadcastAction,
}

impl Bitmap {
    pub fn new() -> Self {
        Self {
            one: message::register(note_word, 0).expect("an action of the kernel"),
            all: message::register_broadcast(note_word, 0).expect("an action of the kernel"),
        }
    }
}

impl Mechanism for Bitmap {
    fn unicast(&self, target: u32) {
        message::post(target, self.one);
    }

    fn broadcast(&self) {
        message::broadcast(self.all);
    }
}

impl Drop for Bitmap {
    fn drop(&mut self) {
        message::unregister(self.one).expect("it is registered");
        message::unregister_broadcast(self.all).expect("it is registered");
    }
}
