//! The condition variable.

#[macro_use]
mod common;

models! {
    ["condvar"];
    each_notification_reaches_a_waiter: ["condvar/notifies-"],
    a_broadcast_reaches_all: ["condvar/broadcasts-"],
    a_waiter_that_gives_up_takes_no_notification_with_it: ["condvar/gives-up-"],
    a_cancelled_waiter_passes_its_notification_on: ["condvar/cancelled-"],
    a_broadcast_moves_the_waiters_to_their_mutex: ["condvar/moves-"],
    a_waiter_that_was_moved_touches_the_mutex_alone: ["condvar/destroyed-"],
    waiters_that_were_moved_pass_one_that_does_not_run: ["condvar/passes-the-stuck-"],
    survives_an_exhausted_arena: ["condvar/exhausted-"],
}
