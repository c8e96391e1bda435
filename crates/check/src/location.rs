//! The words of the program: their locations in the graph, by address, and whether their memory is
//! alive.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Index, IndexMut};

use crate::clock::{Clock, Id};

/// An access that has taken place.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) id: Id,
    pub(crate) stamp: u32,
    /// Its place in the coherence order of its location: after accesses with smaller places. Each
    /// write has an even place, and the reads from it have the next place.
    pub(crate) place: u32,
}

impl Access {
    pub(crate) fn is_write(&self) -> bool {
        self.place.is_multiple_of(2)
    }

    /// The place in modification order of the write, or of the read's source.
    pub(crate) fn rank(&self) -> u16 {
        (self.place / 2) as u16
    }
}

/// One atomic word of the program.
#[derive(Default)]
pub(crate) struct Location {
    pub(crate) address: usize,
    pub(crate) name: Option<&'static str>,
    /// Its accesses, in the order in which they took place.
    pub(crate) accesses: Vec<Access>,
    /// The last access of each thread.
    pub(crate) extent: Clock,
    /// The last write in modification order, as an index of `accesses`.
    last: Option<usize>,
    /// The thread that declared the memory dead.
    pub(crate) retired: Option<usize>,
}

impl Location {
    /// Adds an access that takes place now.
    pub(crate) fn add(&mut self, access: Access) {
        self.extent.include(access.id);
        if access.is_write() && self.latest().is_none_or(|latest| latest.place < access.place) {
            self.last = Some(self.accesses.len());
        }
        self.accesses.push(access);
    }

    /// The last write in modification order.
    pub(crate) fn latest(&self) -> Option<&Access> {
        self.last.map(|last| &self.accesses[last])
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(|access| access.is_write())
    }
}

/// Hashes addresses: they are distributed well enough as they are.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(usize::from(byte)));
    }

    fn write_usize(&mut self, value: usize) {
        self.0 = (self.0 ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

pub(crate) type Addresses<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// All words of an execution, by location number, and their addresses.
#[derive(Default)]
pub(crate) struct Locations {
    all: Vec<Location>,
    addresses: Addresses<u16>,
    names: Addresses<&'static str>,
    /// Regions that were declared dead: from, to, by which thread.
    retired: Vec<(usize, usize, usize)>,
    /// Words in these regions that were dropped afterwards: a new word there is alive.
    revived: HashSet<usize, BuildHasherDefault<AddressHasher>>,
}

impl Locations {
    /// Resets to `used` locations, none of them bound to an address.
    pub(crate) fn reset(&mut self, used: usize) {
        for location in &mut self.all {
            location.address = 0;
            location.name = None;
            location.accesses.clear();
            location.extent = Clock::default();
            location.last = None;
            location.retired = None;
        }
        self.all.resize_with(used, Location::default);
        self.addresses.clear();
        self.names.clear();
        self.retired.clear();
        self.revived.clear();
    }

    pub(crate) fn all(&self) -> &[Location] {
        &self.all
    }

    /// The location at `address`, which gets its next free number if it is new.
    pub(crate) fn locate(&mut self, address: usize) -> u16 {
        if let Some(&location) = self.addresses.get(&address) {
            return location;
        }
        self.all.push(Location::default());
        let location = (self.all.len() - 1) as u16;
        self.bind(address, location);
        location
    }

    /// The location at `address`, if it was accessed.
    pub(crate) fn located(&self, address: usize) -> Option<u16> {
        self.addresses.get(&address).copied()
    }

    /// The location at `address` and its number of accesses, if it was accessed.
    pub(crate) fn touched(&self, address: usize) -> Option<(u16, usize)> {
        self.located(address).map(|at| (at, self[at].accesses.len()))
    }

    /// Binds `address` to the location that the graph names.
    pub(crate) fn bind(&mut self, address: usize, location: u16) {
        let state = &mut self.all[usize::from(location)];
        if state.address == address {
            return;
        }
        state.address = address;
        state.name = self.names.get(&address).copied();
        let dead = self.retired.iter().find(|(from, to, _)| (*from..*to).contains(&address));
        let dead = dead.filter(|_| !self.revived.contains(&address));
        state.retired = dead.map(|&(_, _, by)| by);
        self.addresses.insert(address, location);
    }

    /// Notes that the word at `address` is gone; the next word there is a different one.
    pub(crate) fn forget(&mut self, address: usize) {
        self.addresses.remove(&address);
        self.names.remove(&address);
        if !self.retired.is_empty() {
            self.revived.insert(address);
        }
    }

    /// Declares the words between two addresses dead, for the thread `by`. Returns the stamp of an
    /// access that is not known to happen before, if there is one.
    pub(crate) fn retire(
        &mut self,
        (from, to): (usize, usize),
        by: usize,
        is_before: impl Fn(Id) -> bool,
    ) -> Option<u32> {
        let mut late = None;
        for location in &mut self.all {
            if (from..to).contains(&location.address) {
                location.retired = Some(by);
                let mut accesses = location.accesses.iter();
                let first = accesses.find(|access| !is_before(access.id));
                late = first.map(|access| access.stamp).or(late);
            }
        }
        self.retired.push((from, to, by));
        late
    }

    /// Gives a word a name in traces.
    pub(crate) fn name(&mut self, address: usize, name: &'static str) {
        self.names.insert(address, name);
        if let Some(&location) = self.addresses.get(&address) {
            self.all[usize::from(location)].name = Some(name);
        }
    }
}

impl Index<u16> for Locations {
    type Output = Location;

    fn index(&self, location: u16) -> &Location {
        &self.all[usize::from(location)]
    }
}

impl IndexMut<u16> for Locations {
    fn index_mut(&mut self, location: u16) -> &mut Location {
        &mut self.all[usize::from(location)]
    }
}
