//! A window of an X server (X11) that shows a player's pictures.
//!
//! A separate thread has the connection: it takes the newest picture, converts it, makes the server
//! draw it and waits until that is done. So the loop that shows a picture only copies it, and does
//! not wait; a picture for which the server is too slow is skipped, and counted.
//!
//! ```text
//!   the loop            show ──► one picture ──► the thread ──► the X server
//!                                (the newest)        │
//!                       closed, fault, the log ◄─────┘
//! ```
//!
//! - WINDOW-1: no call but [`Window::open`] blocks, whatever the server and the thread do.
//! - WINDOW-2: what is visible at a time follows from the [log](Status::log): the last picture
//!   whose drawing was over by then, or one whose drawing had begun. A picture becomes visible as a
//!   whole.
//! - WINDOW-3: a server that goes away is a [fault](Screen::fault); the player plays on unseen.
//!
//! | file | contents |
//! |---|---|
//! | `server` | the requests to the X server |
//! | `pixels` | conversion of pictures to pixels |
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

/// The interval at which the thread reads the server's events while there is no picture to draw.
const LOOK: Duration = Duration::from_millis(50);
/// Number of pictures in a log.
const LOG: usize = 256;

/// A picture that was drawn. Times are those of [`now_ns`].
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
    /// Pictures that were not drawn, because a newer one came before the server was ready.
    pub skipped: u64,
    /// The last pictures that were drawn, at most 256, in order.
    pub log: VecDeque<Drawn>,
    /// Whether the user has closed the window.
    pub is_closed: bool,
    /// Why nothing is drawn any more.
    pub fault: Option<String>,
}

/// A window. Dropping it closes the window when the current drawing is done.
pub struct Window {
    shared: Arc<Shared>,
    number: u32,
    /// Pictures that were skipped because the thread held the lock.
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
    /// A picture whose buffers can be reused.
    spare: Option<Picture>,
    status: Status,
    /// Whether the window was dropped: no player shows pictures any more.
    is_over: bool,
}

impl Window {
    /// Opens a window of that size, in pixels, on the display in the environment variable
    /// `DISPLAY`. Blocks until the window exists. Pictures are shown at a scale of 1, from the top
    /// left.
    ///
    /// # Errors
    ///
    /// [`Error::Display`] if there is no X server, or not one with 24 bits of true colours;
    /// [`Error::Parameter`] for a size that no window can have.
    pub fn open(title: &str, width: u32, height: u32) -> Result<Self, Error> {
        Self::open_on(None, title, width, height)
    }

    /// Opens a window on the named display, such as `:1`. Blocks until the window exists.
    ///
    /// # Errors
    ///
    /// Those of [`Window::open`].
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

    /// The window's number at the X server, for programs that inspect it from outside.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The current state of the window. May block briefly, while the thread updates it.
    pub fn status(&self) -> Status {
        let mut status = self.shared.state.lock().status.clone();
        status.skipped += self.missed.get();
        status
    }
}

impl Screen for Window {
    fn show(&mut self, picture: &Picture, number: usize) {
        // WINDOW-1: the thread holds this lock only briefly, but it may lose its CPU while it does.
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

/// Draws the pictures that are shown, until the window is closed or dropped, or the server is gone.
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
