//! The ShflLock spinlock.

#[macro_use]
mod common;

models! {
    ["shfl-spin"];
    excludes: ["shfl-spin/excludes-"],
    excludes_on_a_crowded_machine: ["shfl-spin/crowded-"],
    sorts_without_losing_anybody: ["shfl-spin/sorts-"],
    is_free_after_contention: ["shfl-spin/free-afterwards-"],
    a_try_is_honest: ["shfl-spin/tries-"],
    survives_an_exhausted_arena: ["shfl-spin/exhausted-"],
    works_in_the_child_of_a_fork: ["shfl-spin/inherited-"],
    may_be_destroyed_once_it_was_had: ["shfl-spin/destroyed-"],
    works_as_shipped: ["shfl-spin/shipped-"],
}
