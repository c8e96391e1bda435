//! A window of an X server (X11) that shows a player's pictures.
//!
//! A thread of its own has the connection: it takes the newest picture, converts it, makes the
//! server draw it and waits until that is done. So the loop that shows a picture only leaves a copy
//! of it there, and does not wait; a picture that the server is too slow for is skipped, and
//! counted.
//!
//! ```text
//!   the loop            show ──► one picture ──► the thread ──► the X server
//!                                (the newest)        │
//!                       closed, fault, the log ◄─────┘
//! ```
//!
//! - WINDOW-1: no call but [`Window::open`] blocks, whatever the server and the thread do.
//! - WINDOW-2: what is seen at a time is what the [log](Status::log) says: the last picture of
//!   which drawing was over by then, or one of which it had begun. All of a picture is seen at
//!   once.
//! - WINDOW-3: a server that goes away is a [fault](Screen::fault); the player plays on unseen.
//!
//! | file | what is in it |
//! |---|---|
//! | `server` | what is said to the X server |
//! | `pixels` | pictures as pixels |
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use antiphon_coop::event_loop::Loop;
//! use antiphon_player::window::Window;
//! use antiphon_player::{Clip, Hosted, Options, Player, decode};
//!
//! let clip = Arc::new(Clip::open("clip.h264".as_ref())?);
//! let (width, height) = clip.size();
//! let window = Window::open("clip.h264", width, height)?;
//! let decoder = decode::installed(&clip, 800_000)?;
//! let mut events = Loop::new()?;
//! let player = Player::new(clip, decoder, window, Options::default());
//! let player = Hosted::start(&mut events, player);
//! let _ = events.run();
//! println!("{}, {:?}", player.program().report(), player.program().screen().status());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod pixels;
mod server;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{Condvar, Mutex};
use antiphon_coop::event_loop::now_ns;

use self::server::Server;
use crate::Error;
use crate::picture::{Picture, Screen};

/// How often the thread sees what the server says while there is no picture to be drawn.
const LOOK: Duration = Duration::from_millis(50);
/// Pictures that a log has.
const LOG: usize = 256;

/// A picture that was drawn; times are those of [`now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its number in the clip, in display order.
    pub number: usize,
    /// The time when drawing it began.
    pub begun_ns: u64,
    /// The time when the server had drawn it.
    pub done_ns: u64,
}

/// The state of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Pictures that were drawn.
    pub drawn: u64,
    /// Pictures that were not, as there was a newer one before the server was through.
    pub skipped: u64,
    /// The last of those that were drawn, 256 at the most, in their order.
    pub log: VecDeque<Drawn>,
    /// Its user has closed it.
    pub is_closed: bool,
    /// Why nothing is drawn any more.
    pub fault: Option<String>,
}

/// A window. Dropped, it goes when what is being drawn is drawn.
pub struct Window {
    shared: Arc<Shared>,
    number: u32,
    /// Pictures for which the thread was in the way.
    missed: Cell<u64>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The picture to draw.
    next: Option<(Picture, usize)>,
    /// A picture whose room can be used again.
    spare: Option<Picture>,
    status: Status,
    /// No player shows pictures any more.
    is_over: bool,
}

impl Window {
    /// Opens a window of that size, in pixels, on the display that the environment names
    /// (`DISPLAY`). Blocks until it is there. A picture is shown at a scale of 1, from the top left
    /// on.
    ///
    /// # Errors
    ///
    /// [`Error::Display`] if there is no X server, or not one with 24 bits of true colours;
    /// [`Error::Parameter`] for a size that no window has.
    pub fn open(title: &str, width: u32, height: u32) -> Result<Self, Error> {
        Self::open_on(None, title, width, height)
    }

    /// Opens a window on the display that is named, as `:1`.
    ///
    /// # Errors
    ///
    /// As [`Window::open`].
    pub fn open_on(
        display: Option<&str>,
        title: &str,
        width: u32,
        height: u32,
    ) -> Result<Self, Error> {
        let side = |side: u32| u16::try_from(side).ok().filter(|side| (1..=32_767).contains(side));
        let (Some(width), Some(height)) = (side(width), side(height)) else {
            return Err(Error::Parameter("a window is 1 to 32767 pixels wide and high"));
        };
        let server = Server::open(display, title, (width, height))?;
        let number = server.window();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("window".to_owned())
            .spawn(move || serve(&of_thread, server))
            .map_err(|error| Error::Display(format!("no thread for the window: {error}")))?;
        Ok(Self { shared, number, missed: Cell::new(0) })
    }

    /// Its number at the X server, for a program that looks at it from outside.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The state of the window until now. Waits for the thread, if that is just noting something.
    pub fn status(&self) -> Status {
        let mut status = self.shared.state.lock().status.clone();
        status.skipped += self.missed.get();
        status
    }
}

impl Screen for Window {
    fn show(&mut self, picture: &Picture, number: usize) {
        // WINDOW-1: the thread holds this for moments only, but it may be kept from the CPU.
        let Some(mut state) = self.shared.state.try_lock() else {
            self.missed.set(self.missed.get() + 1);
            return;
        };
        if state.status.is_closed || state.status.fault.is_some() {
            return;
        }
        let room = match state.next.take() {
            Some((room, _)) => {
                state.status.skipped += 1;
                Some(room)
            }
            None => state.spare.take(),
        };
        let mut room = room.unwrap_or_else(|| Picture::gray(0, 0));
        room.copy_from(picture);
        state.next = Some((room, number));
        drop(state);
        self.shared.changed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.shared.state.try_lock().is_some_and(|state| state.status.is_closed)
    }

    fn fault(&self) -> Option<String> {
        self.shared.state.try_lock().and_then(|state| state.status.fault.clone())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_one();
    }
}

/// Draws what is shown, until the window is closed or dropped, or the server has gone.
fn serve(shared: &Shared, mut server: Server) {
    loop {
        let mut state = shared.state.lock();
        if state.next.is_none() && !state.is_over {
            shared.changed.wait_for(&mut state, LOOK);
        }
        let next = state.next.take();
        if state.is_over && next.is_none() {
            return;
        }
        drop(state);
        let went = next.map_or(Ok(()), |(picture, number)| {
            let begun_ns = now_ns();
            server.draw(&picture)?;
            note(shared, picture, Drawn { number, begun_ns, done_ns: now_ns() });
            Ok(())
        });
        let closed = went.and_then(|()| server.is_closed());
        let mut state = shared.state.lock();
        match closed {
            Ok(false) => {}
            Ok(true) => return state.status.is_closed = true,
            Err(said) => return state.status.fault = Some(said),
        }
    }
}

fn note(shared: &Shared, picture: Picture, drawn: Drawn) {
    let mut state = shared.state.lock();
    state.spare = Some(picture);
    state.status.drawn += 1;
    if state.status.log.len() == LOG {
        state.status.log.pop_front();
    }
    state.status.log.push_back(drawn);
}
