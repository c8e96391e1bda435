//! Copies of packets, and where their memory comes from.
//!
//! A packet is longer than what glibc keeps for each thread, and often freed by another than the
//! one that has made it: each of the two then takes the lock of the arena that it came from. So
//! memory may be used again in place of that, as DPDK's pools of packets have it.

use std::ops::Deref;

use antiphon::recycle::{Recycled, Recycler};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The origin of the memory of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// Memory of the allocator, for each packet
    Allocated,
    /// Memory of a packet that is over
    Reused,
}

/// The copy of a packet.
pub enum Copied {
    /// In memory of its own.
    Allocated(Vec<u8>),
    /// In memory of one before.
    Reused(Recycled<'static, Vec<u8>>),
}

static PACKETS: Recycler<Vec<u8>> = Recycler::new(Vec::new, Vec::clear);

impl Copies {
    /// A copy of `bytes`.
    pub fn copy(self, bytes: &[u8]) -> Copied {
        match self {
            Self::Allocated => Copied::Allocated(bytes.to_vec()),
            Self::Reused => {
                let mut copy = PACKETS.take();
                copy.extend_from_slice(bytes);
                Copied::Reused(copy)
            }
        }
    }
}

impl Deref for Copied {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Allocated(bytes) => bytes,
            Self::Reused(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_bytes_in_memory_of_either_kind() {
        assert_eq!(*Copies::Allocated.copy(b"a"), *b"a");
        drop(Copies::Reused.copy(&[1; 100]));
        assert_eq!(*Copies::Reused.copy(b"bc"), *b"bc");
    }
}
