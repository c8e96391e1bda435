//! Bare metal, as a type: the name by which algorithms ask. `platform` has the answers.

/// Bare metal.
///
/// An algorithm that waits does so on a kernel thread: an action of a message has none, and must
/// not wait.
#[derive(Clone, Copy, Debug)]
pub struct Metal;
