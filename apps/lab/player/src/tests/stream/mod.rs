//! Streaming: in virtual time, over the machine's loopback, and with peers that violate the
//! protocol.

mod faults;
mod format;
mod link;
mod loopback;
