//! The arena of waiter nodes.

#[macro_use]
mod common;

models! {
    ["arena"];
    a_node_has_one_user_at_a_time: ["arena/one-user-"],
    the_free_list_loses_and_doubles_nothing: ["arena/free-list-"],
    nodes_of_dead_threads_are_found_once: ["arena/scavenges-"],
    an_exhausted_arena_says_so: ["arena/exhausted-"],
}
