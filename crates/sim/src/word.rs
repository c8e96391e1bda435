//! Accesses to words of any size: an access waits for its line, and then reads or changes the value
//! that its thread sees.

use crate::buffer::{Posting, drain};
use crate::line::{Kind, LINE, LineId};
use crate::step::{arrive, step};
use crate::world::{World, suspend, with};
use crate::{Memory, shadow};

/// A word in the host's memory.
pub(crate) trait Native {
    fn address(&self) -> usize;
    fn get(&self) -> u64;
    fn set(&self, value: u64);
}

/// The result of an access.
pub(crate) struct Done {
    pub(crate) value: u64,
    pub(crate) line: LineId,
    /// The line's version when the access took effect.
    pub(crate) version: u64,
}

impl World {
    /// The value of a word that `thread` sees.
    pub(crate) fn seen(&mut self, thread: usize, label: LineId, word: &impl Native) -> u64 {
        let offset = (word.address() % LINE) as u8;
        let shadows = &mut self.lines.get_mut(label).shadows;
        shadow::seen(shadows, offset, thread).map_or_else(|| word.get(), |value| *value)
    }

    /// The value of a word that the running thread sees, without an access.
    pub(crate) fn peek(&mut self, word: &impl Native) -> u64 {
        match self.lines.find(word.address()) {
            Some(label) => self.seen(self.me(), label, word),
            None => word.get(),
        }
    }

    fn write(&mut self, thread: usize, label: LineId, word: &impl Native, value: u64) {
        let offset = (word.address() % LINE) as u8;
        match shadow::seen(&mut self.lines.get_mut(label).shadows, offset, thread) {
            // SHADOW-1: the value in memory becomes visible later.
            Some(visible) => *visible = value,
            None => word.set(value),
        }
    }
}

pub(crate) fn load(word: &impl Native) -> Done {
    access(word, Kind::Load, |_, _| None)
}

/// Returns the old value. `change` computes the new value, or `None` for no write.
pub(crate) fn modify(
    word: &impl Native,
    kind: Kind,
    change: impl FnOnce(&mut World, u64) -> Option<u64>,
) -> Done {
    access(word, kind, change)
}

fn access(
    word: &impl Native,
    kind: Kind,
    change: impl FnOnce(&mut World, u64) -> Option<u64>,
) -> Done {
    let line = arrive(word.address(), kind);
    with(|world| {
        let me = world.me();
        let value = world.seen(me, line, word);
        let new = if kind == Kind::Load { None } else { change(world, value) };
        if let Some(new) = new {
            world.write(me, line, word, new);
        }
        let version = world.commit(me, line, kind, new.is_some());
        Done { value, line, version }
    })
}

/// Stores, unless `refuses` returns `true` in the instant in which the store is posted or done.
/// Returns whether it stored.
pub(crate) fn store(word: &impl Native, value: u64, refuses: impl Fn(&mut World) -> bool) -> bool {
    if with(|world| world.model.memory == Memory::Tso) {
        step(|world| world.hit_ns(world.me(), Kind::Store));
        loop {
            let posting = with(|world| {
                if refuses(world) {
                    return None;
                }
                let posting = world.post(word.address(), word.get(), value);
                if posting == Posting::Write {
                    word.set(value);
                }
                Some(posting)
            });
            match posting {
                None => return false,
                Some(Posting::Write) => return true,
                Some(Posting::Blocks) => break,
                Some(Posting::Full) => {
                    if with(World::drains_for_one) {
                        suspend();
                    }
                }
            }
        }
        drain();
    }
    let mut stored = false;
    modify(word, Kind::Store, |world, _| {
        stored = !refuses(world);
        stored.then_some(value)
    });
    stored
}
