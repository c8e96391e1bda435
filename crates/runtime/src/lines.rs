//! Data that some threads write and others read, apart from its neighbours.

/// On two cache lines of its own: prefetchers take neighbours for one.
#[repr(C, align(128))]
pub(crate) struct Lines<T>(pub(crate) T);
