//! A tokio runtime on one thread: a task for timers, which sleeps until each release time, and one
//! for the rest, which yields after each chunk.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::sleep_until;

use super::super::player::{Player, Seen};
use super::Seat;
use crate::compete::work::now_ns;

/// The state that both tasks share.
struct Shared {
    player: RefCell<Player>,
    seat: RefCell<Seat>,
    /// Notified when there may be something to decode.
    more: Notify,
}

/// Plays on a tokio runtime.
///
/// # Errors
///
/// One line, if the runtime can't be built.
pub fn play(player: Player, seat: Seat) -> Result<Seen, String> {
    let built = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = built.map_err(|error| format!("tokio: {error}"))?;
    let (player, seat) = (RefCell::new(player), RefCell::new(seat));
    let shared = Rc::new(Shared { player, seat, more: Notify::new() });
    LocalSet::new().block_on(&runtime, async {
        let decoder = spawn_local(decode(shared.clone()));
        timers(&shared).await;
        decoder.abort();
        // Cancelled, because it never ends by itself; it then no longer holds its reference.
        let _ = decoder.await;
    });
    let shared = Rc::try_unwrap(shared).map_err(|_| "a task of tokio is left".to_owned())?;
    Ok(shared.player.into_inner().into_seen())
}

async fn timers(shared: &Shared) {
    loop {
        let Some(release_ns) = shared.player.borrow().release_ns() else { return };
        let ahead = Duration::from_nanos(release_ns.saturating_sub(now_ns()));
        sleep_until((Instant::now() + ahead).into()).await;
        let shows = shared.player.borrow_mut().dispatch(now_ns());
        if shows == Some(true) {
            shared.seat.borrow().show();
        }
        shared.more.notify_one();
    }
}

async fn decode(shared: Rc<Shared>) {
    loop {
        let best = shared.player.borrow().best();
        let Some(frame) = best else {
            shared.more.notified().await;
            continue;
        };
        let ns = shared.player.borrow().chunk_ns(frame);
        shared.seat.borrow_mut().decode(ns);
        shared.player.borrow_mut().decoded(frame, now_ns());
        yield_now().await;
    }
}
