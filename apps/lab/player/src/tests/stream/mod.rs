//! Streaming: in virtual time, over the machine's loopback, and with what is no client or server.

mod faults;
mod format;
mod link;
mod loopback;
