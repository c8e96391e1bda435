//! The process: the image.

/// Ends it, as a panic does.
pub fn abort() -> ! {
    panic!("abort")
}
