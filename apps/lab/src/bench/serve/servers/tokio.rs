//! Tokio: a task for each connection.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

use super::{ADDRESS, PAGE, ROOM, listens, request};
use crate::bench::serve::cases::Case;

pub fn serve(case: Case, workers: usize) -> io::Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(ADDRESS).await?;
        listens(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            match case {
                Case::Echo => drop(tokio::spawn(echo(stream))),
                Case::Http => drop(tokio::spawn(http(stream))),
            }
        }
    })
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            read => stream.write_all(&buffer[..read]).await?,
        }
    }
}

async fn http(mut stream: TcpStream) -> io::Result<()> {
    let (mut buffer, mut filled) = ([0; ROOM], 0);
    loop {
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Ok(()),
            read => filled += read,
        }
        while let Some(length) = request(&buffer[..filled])? {
            stream.write_all(PAGE).await?;
            buffer.copy_within(length..filled, 0);
            filled -= length;
        }
    }
}
