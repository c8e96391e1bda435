//! `antiphon_actions_t`: the table of actions.

use core::ffi::{c_int, c_void};

use antiphon_linux::Linux;
use antiphon_runtime::message::{self, ActionId, Refused};
use libc::{EDEADLK, EINVAL, ENOENT, ENOSPC};

use crate::export::exports;

/// `antiphon_actions_t`.
pub struct Actions(pub(super) message::Actions<Linux>);

// The same numbers as in `antiphon_message.h`.
const _: () = assert!(message::Actions::<Linux>::MOST == 961 && message::SIGNALS == 63);

type Run = unsafe extern "C" fn(*mut c_void, *const u64);
type RunSignal = unsafe extern "C" fn(*mut c_void);

/// The first argument of the caller's function.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

// SAFETY: it is passed on, and not dereferenced here. The header requires that any thread may call
// the function, and several at a time.
unsafe impl Send for Context {}
// SAFETY: the pointer is passed on, and not dereferenced here.
unsafe impl Sync for Context {}

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Writes the number of the action that was registered; returns `ENOSPC` if none was.
fn name(made: Option<ActionId>, id: &mut u32) -> c_int {
    match made {
        Some(made) => {
            *id = made.bits();
            0
        }
        None => ENOSPC,
    }
}

exports! {
    /// Makes a table.
    fn antiphon_actions_create(actions: &mut *mut Actions, capacity: usize) -> c_int {
        if capacity > message::Actions::<Linux>::MOST {
            return EINVAL;
        }
        *actions = Box::into_raw(Box::new(Actions(message::Actions::new(capacity))));
        0
    }

    /// Frees a table.
    fn antiphon_actions_destroy(actions: *mut Actions) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(actions) });
    }

    /// Registers a function that messages run.
    fn antiphon_actions_register(
        actions: &Actions,
        run: Run,
        context: *mut c_void,
        id: &mut u32,
    ) -> c_int {
        let context = Context(context);
        // SAFETY: the caller's function, with the context of its registration and three words.
        let action = move |payload: message::Payload| unsafe {
            run(context.get(), payload.as_ptr());
        };
        name(actions.0.register(action).ok(), id)
    }

    /// Registers a function that signals run.
    fn antiphon_actions_register_signal(
        actions: &Actions,
        run: RunSignal,
        context: *mut c_void,
        id: &mut u32,
    ) -> c_int {
        let context = Context(context);
        // SAFETY: the caller's function, with the context of its registration.
        let action = move || unsafe { run(context.get()) };
        name(actions.0.register_signal(action).ok().map(message::SignalId::action), id)
    }

    /// Unregisters a function: it is not run afterwards.
    fn antiphon_actions_unregister(actions: &Actions, id: u32) -> c_int {
        match actions.0.unregister(ActionId::from_bits(id)) {
            Ok(()) => 0,
            Err(Refused::Unknown) => ENOENT,
            Err(Refused::FromAction) => EDEADLK,
        }
    }
}
