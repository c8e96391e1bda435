//! Our server: a fiber for each connection.

use std::io;

use antiphon::fiber::STACK_BYTES;
use antiphon::net::TcpListener;
use antiphon::pool::Pool;

use super::{ADDRESS, blocking, listens};
use crate::bench::serve::cases::Case;

pub fn serve(case: Case, workers: usize) -> io::Result<()> {
    let builder = Pool::builder().threads(workers);
    // SAFETY: connections create no thread-local, and nothing that they call waits while creating
    // one.
    let pool = unsafe { builder.fibers(STACK_BYTES) }.build()?;
    let listener = TcpListener::bind(ADDRESS)?;
    listens(listener.local_addr()?)?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        drop(pool.spawn(move || blocking::serve(case, stream)));
    }
    Ok(())
}
