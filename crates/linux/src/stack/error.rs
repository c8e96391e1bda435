//! The errors of a source of stacks.

use core::error::Error;
use core::fmt;

use super::LEAST_BYTES;

/// The requested size of a stack is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSize {
    /// Less than [`LEAST_BYTES`].
    Small(usize),
    /// With its guard, the stack would be larger than the largest object.
    Large(usize),
}

impl fmt::Display for BadSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small(bytes) => {
                write!(f, "a stack of {bytes} bytes is too small: ask for {LEAST_BYTES} or more")
            }
            Self::Large(bytes) => write!(f, "a stack of {bytes} bytes is more than can be mapped"),
        }
    }
}

impl Error for BadSize {}

/// All stacks are taken, and the kernel gives no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStack {
    /// There is no address space, or no memory for the lists of stacks.
    Memory,
    /// The guard would exceed the limit on mappings.
    Mappings,
}

impl fmt::Display for NoStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => {
                "no address space for more stacks: \
                 raise the limit (ulimit -v), ask for smaller stacks, or run fewer fibers at a time"
            }
            Self::Mappings => {
                "the kernel refuses to guard another stack: each is two mappings here, so raise \
                 vm.max_map_count (sysctl) and any limit of memory (ulimit -d), or use \
                 Linux 6.13 or later, whose guards need no mappings"
            }
        })
    }
}

impl Error for NoStack {}
