//! The ShflLock mutex.

#[macro_use]
mod common;

models! {
    ["shfl-mutex", "shfl-mutex+light", "shfl-mutex+published"];
    excludes: ["shfl-mutex/excludes-"],
    excludes_whatever_the_platform_does: [
        "shfl-mutex/any-platform-",
        "shfl-mutex/spurious-",
        "shfl-mutex/crowded-",
    ],
    excludes_when_waiters_spin: ["shfl-mutex/spins-"],
    published_form_excludes: ["shfl-mutex+published/excludes-"],
    keeps_the_lock_for_a_head_that_insists: ["shfl-mutex/fair-", "shfl-mutex+light/fair-"],
    sorts_without_losing_anybody: ["shfl-mutex/sorts-"],
    a_waiter_may_give_up: ["shfl-mutex/gives-up-"],
    light_unlock_loses_no_wake: ["shfl-mutex+light/excludes-"],
    the_backstop_breaks_nothing: ["shfl-mutex/backstop-"],
    survives_an_exhausted_arena: ["shfl-mutex/exhausted-"],
    works_in_the_child_of_a_fork: ["shfl-mutex/inherited-"],
    may_be_destroyed_once_it_was_had: ["shfl-mutex/destroyed-", "shfl-mutex+light/destroyed-"],
    a_try_is_honest: ["shfl-mutex/tries-"],
    works_as_shipped: ["shfl-mutex/shipped-", "shfl-mutex+light/shipped-"],
}
