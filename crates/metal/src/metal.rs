//! Bare metal as a type parameter of algorithms. `platform` implements the traits.

/// The bare-metal platform.
///
/// An algorithm that waits must run on a kernel thread: an action of a message has no thread of its
/// own, and must not wait.
#[derive(Clone, Copy, Debug)]
pub struct Metal;
