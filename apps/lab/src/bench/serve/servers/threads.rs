//! A thread for each connection.

use std::net::TcpListener;
use std::{io, thread};

use antiphon::fiber::STACK_BYTES;

use super::{ADDRESS, blocking, listens};
use crate::bench::serve::cases::Case;

pub fn serve(case: Case) -> io::Result<()> {
    let listener = TcpListener::bind(ADDRESS)?;
    listens(listener.local_addr()?)?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        drop(thread.spawn(move || blocking::serve(case, stream))?);
    }
    Ok(())
}
