//! Copies of packets, and the origin of their memory.
//!
//! A packet is longer than the blocks that glibc caches for each thread, and is often freed by
//! another thread than its maker: both threads then take the lock of the arena that it came from.
//! So memory may be reused instead, as DPDK's packet pools do.

use std::ops::Deref;

use antiphon::recycle::{Recycled, Recycler};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Where the memory of a copy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// The allocator, for each packet
    Allocated,
    /// An earlier packet that is done
    Reused,
}

/// The copy of a packet.
pub enum Copied {
    /// In newly allocated memory.
    Allocated(Vec<u8>),
    /// In memory of an earlier packet.
    Reused(Recycled<'static, Vec<u8>>),
}

static PACKETS: Recycler<Vec<u8>> = Recycler::new(Vec::new, Vec::clear);

impl Copies {
    /// Copies `bytes`.
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
