//! All lines of a machine that were accessed so far.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::line::{LINE, Line, LineId};

/// Lines by label, and their labels by host address.
pub(crate) struct Lines {
    /// The distance of two addresses from which their lines always differ, in bytes.
    bytes: usize,
    /// Only looked up, never iterated: its order depends on the host.
    labels: HashMap<usize, LineId, BuildHasherDefault<AddressHasher>>,
    lines: Vec<Line>,
    names: HashMap<u32, &'static str>,
}

impl Lines {
    /// Creates an empty set of lines. If `apart`, each word has its own line.
    pub(crate) fn new(apart: bool) -> Self {
        Self {
            bytes: if apart { 1 } else { LINE },
            labels: HashMap::default(),
            lines: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// The line of a host address, labelled and created now if this is its first access.
    pub(crate) fn label(&mut self, address: usize, make: impl FnOnce(LineId) -> Line) -> LineId {
        let fresh = LineId(self.lines.len() as u32);
        let label = *self.labels.entry(address / self.bytes).or_insert(fresh);
        if label == fresh {
            self.lines.push(make(fresh));
        }
        label
    }

    /// The line of a host address, if it was accessed before.
    pub(crate) fn find(&self, address: usize) -> Option<LineId> {
        self.labels.get(&(address / self.bytes)).copied()
    }

    /// Forgets the word at a host address: the next word there is a different one, on another line
    /// if words are apart.
    pub(crate) fn forget(&mut self, address: usize) {
        if self.bytes == 1 {
            self.labels.remove(&address);
        }
    }

    pub(crate) fn get(&self, label: LineId) -> &Line {
        &self.lines[label.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, label: LineId) -> &mut Line {
        &mut self.lines[label.0 as usize]
    }

    pub(crate) fn set_name(&mut self, label: LineId, name: &'static str) {
        self.names.insert(label.0, name);
    }

    pub(crate) fn name(&self, label: LineId) -> Option<&'static str> {
        self.names.get(&label.0).copied()
    }
}

/// Hashes addresses; the default hasher would take most of the simulator's time.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        // Fibonacci hashing; the rotation moves the well-mixed high bits to those that the table
        // uses.
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}
