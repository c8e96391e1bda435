//! Clients that keep the server busy.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateGCAux, CreateWindowAux, WindowClass};

use crate::Result;

/// The size of a copy, in pixels: some 0.9 MB.
const SIZE: (u16, u16) = (640, 360);
/// Number of copies in flight.
const BATCH: u64 = 4;

/// Starts client number `at`, on that CPU, which runs until `stop`; returns the number of copies it
/// made.
pub fn start(display: String, at: usize, cpu: u32, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    thread::spawn(move || {
        let mut copies = 0;
        if let Err(why) = copy(&display, at, cpu, &stop, &mut copies) {
            eprintln!("a client of the server has failed: {why}");
        }
        copies
    })
}

fn copy(display: &str, at: usize, cpu: u32, stop: &AtomicBool, copies: &mut u64) -> Result<()> {
    antiphon_linux::pin(cpu).map_err(|_| "the CPU may not be used")?;
    let (server, screen) = x11rb::connect(Some(display))?;
    let screen = &server.setup().roots[screen];
    let [window, pixmap, gc] =
        [server.generate_id()?, server.generate_id()?, server.generate_id()?];
    let (width, height) = SIZE;
    // Four windows fit on the screen side by side: covered areas are not copied.
    let (x, y) = ((at % 2) as i16 * 640, (at / 2 % 2) as i16 * 360);
    let (depth, class) = (screen.root_depth, WindowClass::INPUT_OUTPUT);
    let no = CreateWindowAux::new();
    server.create_window(depth, window, screen.root, x, y, width, height, 0, class, 0, &no)?;
    server.map_window(window)?;
    server.create_pixmap(depth, pixmap, window, width, height)?;
    server.create_gc(gc, window, &CreateGCAux::new().graphics_exposures(0))?;
    // Relaxed: the flag publishes no other data.
    while !stop.load(Relaxed) {
        for _ in 0..BATCH {
            server.copy_area(pixmap, window, gc, 0, 0, 0, 0, width, height)?;
        }
        server.get_input_focus()?.reply()?;
        *copies += BATCH;
    }
    Ok(())
}
