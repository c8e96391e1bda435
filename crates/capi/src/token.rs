//! `antiphon_token_t`.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::cancel;
use libc::{ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_token_t`.
pub struct Token(pub(crate) cancel::Token<Linux>);

/// Creates a token for the caller, with or without a parent.
///
/// # Safety
///
/// `parent` is null, or a token.
unsafe fn create(parent: *const Token, deadline: Option<Deadline>) -> *mut Token {
    // SAFETY: the caller's promise.
    let token = match unsafe { parent.as_ref() } {
        Some(parent) => parent.0.child(deadline),
        None => cancel::Token::new(deadline),
    };
    Box::into_raw(Box::new(Token(token)))
}

exports! {
    /// Makes a token.
    fn antiphon_token_create(token: &mut *mut Token, parent: *const Token) {
        // SAFETY: the caller passes a token or null.
        *token = unsafe { create(parent, None) };
    }

    /// Makes a token that has a deadline.
    fn antiphon_token_create_until(
        token: &mut *mut Token,
        parent: *const Token,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes a token or null.
            *token = unsafe { create(parent, Some(deadline)) };
            0
        })
    }

    /// Frees a token.
    fn antiphon_token_destroy(token: *mut Token) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(token) });
    }

    /// Cancels the token and all its descendants.
    fn antiphon_token_cancel(token: &Token) {
        token.0.cancel();
    }

    /// Returns whether the token is cancelled.
    fn antiphon_token_is_cancelled(token: &Token) -> c_int {
        c_int::from(token.0.is_cancelled())
    }

    /// Waits until the token is cancelled.
    fn antiphon_token_wait(token: &Token) {
        while !token.0.wait_until(None) {}
    }

    /// Waits until the token is cancelled, or gives up at the deadline.
    fn antiphon_token_timedwait(token: &Token, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(token.0.wait_until(Some(deadline)), ETIMEDOUT))
    }
}
