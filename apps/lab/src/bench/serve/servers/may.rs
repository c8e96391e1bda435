//! may: a coroutine with a stack for each connection.

use std::io;

use may::coroutine::Builder;
use may::net::TcpListener;

use super::{ADDRESS, blocking, listens};
use crate::bench::serve::cases::Case;

/// Room for the read buffer, and the rest.
const STACK_BYTES: usize = 64 << 10;

pub fn serve(case: Case, workers: usize) -> io::Result<()> {
    may::config().set_workers(workers);
    let listener = TcpListener::bind(ADDRESS)?;
    listens(listener.local_addr()?)?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        // `may` takes the size in words.
        let builder = Builder::new().stack_size(STACK_BYTES / size_of::<usize>());
        // SAFETY: the coroutine uses no thread-local, and fits in the stack.
        drop(unsafe { builder.spawn(move || blocking::serve(case, stream)) }?);
    }
    Ok(())
}
