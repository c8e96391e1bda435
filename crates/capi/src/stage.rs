//! The C interface of `antiphon_stage_t` and `antiphon_inlet_t`.

use core::ffi::{CStr, c_char, c_int, c_void};

use antiphon::stage::{Builder, Inlet as Sends, Stage as Watched, Stats};
use antiphon_linux::Linux;
use antiphon_sync::nap;
use libc::{EAGAIN, EINVAL, ETIMEDOUT, timespec};

use crate::code::{left, timed, unless};
use crate::export::exports;
use crate::item::{Item, Shape};
use crate::pool::{Pooled, with};

/// `antiphon_stage_t`.
pub struct Stage(Watched);

/// `antiphon_inlet_t`.
pub struct Inlet {
    sends: Sends<Item>,
    shape: Shape,
}

/// `antiphon_stage_options_t`. Zero fields mean the Rust defaults.
#[repr(C)]
pub struct StageOptions {
    name: *const c_char,
    item_bytes: usize,
    room: usize,
    width: usize,
    weight: u32,
    kept: u32,
}

/// `antiphon_stage_stats_t`.
#[repr(C)]
pub struct StageStats {
    served: u64,
    full: u64,
    waiting: u64,
    room: u64,
    servers: u64,
    kept: u64,
}

type Serve = unsafe extern "C" fn(*mut c_void, *mut c_void);
type End = unsafe extern "C" fn(*mut c_void);

/// Maximum room and maximum number of servers of a stage.
const MOST: usize = 1 << 20;

/// The caller's functions of a stage.
struct Server {
    serve: Serve,
    end: Option<End>,
    context: *mut c_void,
}

// SAFETY: the header says that any threads may call them, several at a time.
unsafe impl Send for Server {}
// SAFETY: the header says that any threads may call them, several at a time.
unsafe impl Sync for Server {}

impl Server {
    fn serve(&self, mut item: Item) {
        // SAFETY: the caller's function, with the arguments that the header defines.
        unsafe { (self.serve)(self.context, item.bytes().cast()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: the caller's function, with the argument that the header defines.
            unsafe { end(self.context) }
        }
    }
}

impl StageOptions {
    /// # Safety
    ///
    /// The name is a string, or null.
    unsafe fn builder(&self) -> Option<Builder> {
        let name = if self.name.is_null() {
            "stage".into()
        } else {
            // SAFETY: the caller's promise.
            unsafe { CStr::from_ptr(self.name) }.to_string_lossy()
        };
        let mut builder = Watched::builder(name);
        for (number, set) in
            [(self.room, Builder::room as fn(_, _) -> _), (self.width, Builder::width)]
        {
            match number {
                0 => {}
                1..=MOST => builder = set(builder, number),
                _ => return None,
            }
        }
        Some(if self.weight == 0 { builder } else { builder.weight(self.weight) })
    }
}

impl StageStats {
    fn of(stats: Stats) -> Self {
        Self {
            served: stats.served,
            full: stats.full,
            waiting: stats.waiting as u64,
            room: stats.room as u64,
            servers: stats.servers as u64,
            kept: 0,
        }
    }
}

exports! {
    /// Makes a stage.
    fn antiphon_stage_create(
        stage: &mut *mut Stage,
        inlet: &mut *mut Inlet,
        pool: &Pooled,
        options: &StageOptions,
        serve: Serve,
        end: Option<End>,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller passes a string or null.
        let builder = unsafe { options.builder() };
        let (Some(builder), Some(shape)) = (builder, Shape::new(options.item_bytes)) else {
            return EINVAL;
        };
        if !pool.has_fibers() || options.kept != 0 {
            return EINVAL;
        }
        let server = Server { serve, end, context };
        let serve = move |item| server.serve(item);
        let (sends, watched) = with!(pool, pool => builder.on(pool, serve));
        *stage = Box::into_raw(Box::new(Stage(watched)));
        *inlet = Box::into_raw(Box::new(Inlet { sends, shape }));
        0
    }

    /// Waits until the stage is over, and frees it.
    fn antiphon_stage_join(stage: *mut Stage, stats: *mut StageStats) {
        // SAFETY: created by this library, and not used after this call.
        let stage = unsafe { Box::from_raw(stage) }.0;
        // The serving function is C, and does not panic.
        let Ok(done) = stage.join() else { return };
        if !stats.is_null() {
            // SAFETY: the caller passes memory for one value.
            unsafe { stats.write(StageStats::of(done)) }
        }
    }

    /// Frees the handle of the stage, which goes on.
    fn antiphon_stage_detach(stage: *mut Stage) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(stage) });
    }

    /// Writes the counts of the stage so far.
    fn antiphon_stage_stats(stage: &Stage, stats: *mut StageStats) {
        // SAFETY: the caller passes memory for one value.
        unsafe { stats.write(StageStats::of(stage.0.stats())) }
    }

    /// Makes another inlet of the same stage.
    fn antiphon_inlet_clone(inlet: &Inlet) -> *mut Inlet {
        Box::into_raw(Box::new(Inlet { sends: inlet.sends.clone(), shape: inlet.shape }))
    }

    /// Destroys an inlet.
    fn antiphon_inlet_destroy(inlet: *mut Inlet) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(inlet) });
    }

    /// Sends an item; waits for room.
    fn antiphon_inlet_send(inlet: &Inlet, item: *const c_void) {
        // SAFETY: the caller passes an item of this size.
        inlet.sends.send(unsafe { inlet.shape.copy_in(item) });
    }

    /// Sends an item if there is room.
    fn antiphon_inlet_trysend(inlet: &Inlet, item: *const c_void) -> c_int {
        // SAFETY: the caller passes an item of this size.
        let item = unsafe { inlet.shape.copy_in(item) };
        unless(inlet.sends.try_send(item).is_ok(), EAGAIN)
    }

    /// Sends an item; waits for room, or gives up at the deadline.
    fn antiphon_inlet_timedsend(
        inlet: &Inlet,
        item: *const c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes an item of this size.
            let mut item = unsafe { inlet.shape.copy_in(item) };
            while let Err(back) = inlet.sends.send_timeout(item, left(deadline)) {
                // A clock that is set may have been set back.
                if nap::passed::<Linux>(Some(deadline)) {
                    return ETIMEDOUT;
                }
                item = back;
            }
            0
        })
    }
}
