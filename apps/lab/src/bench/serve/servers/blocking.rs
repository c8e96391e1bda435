//! Serves a connection by blocking reads and writes.

use std::io::{self, Read, Write};

use super::{PAGE, ROOM, request};
use crate::bench::serve::cases::Case;

/// Serves until the client has closed the connection.
pub fn serve(case: Case, stream: impl Read + Write) -> io::Result<()> {
    match case {
        Case::Echo => echo(stream),
        Case::Http => http(stream),
    }
}

fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => stream.write_all(&buffer[..read])?,
        }
    }
}

fn http(mut stream: impl Read + Write) -> io::Result<()> {
    let (mut buffer, mut filled) = ([0; ROOM], 0);
    loop {
        match stream.read(&mut buffer[filled..])? {
            0 => return Ok(()),
            read => filled += read,
        }
        while let Some(length) = request(&buffer[..filled])? {
            stream.write_all(PAGE)?;
            buffer.copy_within(length..filled, 0);
            filled -= length;
        }
    }
}
