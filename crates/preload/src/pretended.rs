//! What test programs ask a library that pretends to another machine: the feature `pretend`.

use antiphon_linux::pretend::sections;

/// Returns the number of critical sections that the calling thread is in; in the high half, the
/// number of those that were told to have begun and not to have ended.
// SAFETY: no other object uses this prefix.
#[unsafe(no_mangle)]
extern "C" fn antiphon_pretended_sections() -> u32 {
    let sections = sections();
    sections.depth | sections.told << 16
}
