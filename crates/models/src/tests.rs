//! The table of tests and the models that they run: the tests are made from it, and `antiphon lab
//! check` learns from it what a model must notice.

/// Hands the tests of one subject to the macro `$then`, each with the name prefixes of the models
/// that it runs. A subject is a module of the test program `models`.
#[macro_export]
macro_rules! tests {
    (model_arena: $then:ident) => {
        $then! {
            model_arena:
            a_node_has_one_user_at_a_time: ["arena/one-user-"],
            the_free_list_loses_and_doubles_nothing: ["arena/free-list-"],
            nodes_of_dead_threads_are_found_once: ["arena/scavenges-"],
            an_exhausted_arena_says_so: ["arena/exhausted-"],
        }
    };
    (model_barrier: $then:ident) => {
        $then! {
            model_barrier:
            nobody_goes_on_before_all_have_come: ["barrier/meets-"],
            who_gives_up_has_not_come: ["barrier/gives-up-"],
            survives_an_exhausted_arena: ["barrier/exhausted-"],
            works_in_the_child_of_a_fork: ["barrier/inherited-"],
            what_threads_are_told_is_one_story: ["barrier/linearizable-"],
            may_be_destroyed_once_anybody_is_back: ["barrier/destroyed-"],
            works_as_shipped: ["barrier/shipped-"],
        }
    };
    (model_boost: $then:ident) => {
        $then! {
            model_boost:
            who_sleeps_hears_of_what_is_due_before: ["vigil/"],
            who_has_dispatched_is_lowered: ["boost/dispatches-"],
            who_has_left_is_not_raised: ["boost/leaves-", "boost/passes-on-"],
            who_is_raised_again_has_not_left: ["boost/overruns-"],
        }
    };
    (model_chunks: $then:ident) => {
        $then! {
            model_chunks:
            each_event_is_told_once_or_counted: ["chunks/drained-", "chunks/passed-on-"],
            what_is_read_as_it_grows_has_no_gap: ["chunks/left-"],
            a_thread_that_ends_keeps_nothing: ["chunks/ends-"],
            the_child_of_a_fork_writes_elsewhere: ["chunks/forks-"],
            a_signal_handler_may_come_at_any_point: ["chunks/interrupted-"],
            a_thread_may_be_killed_at_any_point: ["chunks/killed-"],
        }
    };
    (model_classic: $then:ident) => {
        $crate::locks! { classic => $crate::tests_of_locks [$then] }
    };
    (model_clock: $then:ident) => {
        $then! {
            model_clock:
            what_was_measured_is_enough: ["ordo/measures-"],
            a_later_stamp_is_not_less: ["ordo/orders-"],
            a_new_time_is_after_the_old: ["ordo/waits-"],
            transactions_see_one_time: ["tl2-counter/snapshot-", "tl2-ordo/snapshot-"],
            transactions_are_one_after_the_other: [
                "tl2-counter/skew-",
                "tl2-counter/adds-",
                "tl2-counter/blind-",
                "tl2-ordo/skew-",
                "tl2-ordo/adds-",
                "tl2-ordo/blind-",
            ],
        }
    };
    (model_condvar: $then:ident) => {
        $then! {
            model_condvar:
            each_notification_reaches_a_waiter: ["condvar/notifies-"],
            a_broadcast_reaches_all: ["condvar/broadcasts-"],
            the_most_urgent_is_notified_first: ["condvar/urgent-"],
            a_waiter_that_gives_up_takes_no_notification_with_it: ["condvar/gives-up-"],
            a_cancelled_waiter_passes_its_notification_on: ["condvar/cancelled-"],
            a_broadcast_moves_the_waiters_to_their_mutex: ["condvar/moves-"],
            a_waiter_that_was_moved_touches_the_mutex_alone: ["condvar/destroyed-"],
            waiters_that_were_moved_pass_one_that_does_not_run: ["condvar/passes-the-stuck-"],
            what_threads_are_told_is_one_story: ["condvar/linearizable-"],
            survives_an_exhausted_arena: ["condvar/exhausted-"],
            may_be_destroyed_once_all_are_notified: ["inside/destroyed-"],
            is_made_new_in_the_child_of_a_fork: [
                "inside/adopted-",
                "inside/inherited-",
                "inside/interrupted-",
            ],
        }
    };
    (model_cst: $then:ident) => {
        $then! {
            model_cst:
            a_mutex_excludes: ["cst/excludes-", "cst/spurious-"],
            a_mutex_excludes_when_waiters_spin: ["cst/spins-"],
            sockets_take_turns: ["cst/sockets-"],
            structures_are_made_once: ["cst/makes-"],
            a_try_is_honest: ["cst/tries-"],
            a_mutex_may_be_dropped_once_it_was_had: ["cst/destroyed-"],
            survives_an_exhausted_arena: ["cst/exhausted-"],
            works_as_shipped: ["cst/shipped-"],
            readers_share_and_writers_do_not: ["cst-rw/shares-"],
            readers_structures_are_made_once: ["cst-rw/makes-"],
            a_writer_becomes_a_reader: ["cst-rw/downgrades-"],
            tries_of_both_kinds_are_honest: ["cst-rw/tries-"],
            readers_survive_an_exhausted_arena: ["cst-rw/exhausted-"],
        }
    };
    (model_defects: $then:ident) => {
        $then! {
            model_defects:
            defect_a_and_b_free_is_free_again: ["shfl-defects/a-b-"],
            defect_f_whoever_waits_is_not_overtaken: ["shfl-defects/f-"],
        }
    };
    (model_delegation: $then:ident) => {
        $then! {
            model_delegation:
            sections_exclude: ["dsm-synch/excludes-", "dsm-synch/spurious-", "dsm-synch/spins-"],
            who_leads_hands_over: ["dsm-synch/hands-over-", "dsm-synch/bounded-"],
            a_try_is_honest: ["dsm-synch/tries-"],
            may_be_destroyed_once_it_was_had: ["dsm-synch/destroyed-"],
            survives_an_exhausted_arena: ["dsm-synch/exhausted-"],
            works_as_shipped: ["dsm-synch/shipped-"],
            a_server_serves_all: ["rcl/serves-", "rcl/spurious-", "rcl/watches-"],
            clients_share_a_mailbox: ["rcl/shares-a-box-"],
            a_mailbox_begins_empty: ["rcl/reuses-"],
            servers_come_and_go: ["rcl/lends-", "rcl/stops-", "rcl/lets-go-", "rcl/succeeds-"],
        }
    };
    (model_events: $then:ident) => {
        $then! {
            model_events:
            a_set_has_one_taker: ["event/excludes-", "event/signals-", "event/coalesces-"],
            a_waiter_that_gives_up_takes_no_set_with_it: ["event/gives-up-"],
            a_try_is_honest: ["event/tries-"],
            near_waiters_are_preferred_and_none_is_lost: ["event/sorts-"],
            may_be_destroyed_once_all_are_back: ["event/destroyed-", "latch/destroyed-"],
            survive_an_exhausted_arena: [
                "event/exhausted-",
                "latch/exhausted-",
                "event-count/exhausted-",
            ],
            work_in_the_child_of_a_fork: ["event/inherited-", "latch/inherited-"],
            a_latch_opens_when_all_is_done: ["latch/opens-"],
            who_gives_up_leaves_a_latch_to_others: ["latch/gives-up-"],
            a_notification_reaches_who_looks_for_nothing: ["event-count/notifies-"],
            who_cancels_passes_its_notification_on: ["event-count/cancelled-"],
            who_gives_up_takes_no_notification_with_it: ["event-count/gives-up-"],
            who_waits_for_several_is_told_of_each: [
                "several/counts-1+",
                "several/counts-beside-",
                "several/counts-gives-up-",
                "several/counts-exhausted-",
                "several/events-1+",
                "several/latches-",
            ],
            what_is_not_used_is_passed_on: ["several/counts-passed-on-", "several/events-set-"],
            a_broadcast_reaches_all_that_wait: ["broadcast/sends-", "broadcast/chases-"],
            who_gives_up_leaves_a_broadcast_to_others: ["broadcast/gives-up-"],
            a_broadcast_may_be_destroyed_once_all_are_back: ["broadcast/destroyed-"],
            those_of_a_crowd_wake_each_other: ["broadcast/crowd-"],
            fibers_wait_for_broadcasts_on_lists: ["broadcast/fibers-"],
            fibers_and_threads_wait_for_one_broadcast: ["broadcast/mixed-"],
            a_broadcast_survives_exhaustion_and_forks: [
                "broadcast/exhausted-",
                "broadcast/inherited-",
            ],
            work_as_shipped: [
                "event/shipped-",
                "latch/shipped-",
                "event-count/shipped-",
                "broadcast/shipped-",
            ],
        }
    };
    (model_message: $then:ident) => {
        $then! {
            model_message:
            each_message_is_delivered_once: ["message/delivers-", "message/laps-"],
            the_owner_is_told_once: ["message/tells-once-"],
            an_owner_sleeps_in_its_own_call: ["message/dozes-"],
            posters_wait_for_room: ["message/waits-for-room-", "message/full-"],
            who_gives_up_has_its_message_back: ["message/gives-up-"],
            signals_coalesce_and_are_not_lost: ["message/signals-"],
            an_action_that_is_unregistered_is_not_run: ["message/unregisters-"],
            an_entry_is_one_actions_at_a_time: ["message/registers-", "message/takes-over-"],
            what_is_not_delivered_at_the_end_comes_back: ["message/closes-"],
            survives_an_exhausted_arena: ["message/exhausted-"],
            works_as_shipped: ["message/shipped-"],
        }
    };
    (model_metal: $then:ident) => {
        $then! {
            model_metal:
            an_inbox_loses_no_thread: ["metal-inbox/"],
            a_token_is_taken_once: ["metal-token/"],
            a_post_is_followed_by_a_run: ["metal-pending/runs-"],
            posts_of_one_action_merge: ["metal-pending/merges-"],
            an_action_is_taken_back: ["metal-pending/retracts-"],
            a_slot_is_not_overwritten: ["metal-slot/runs-", "metal-slot/reaches-"],
            an_action_is_taken_back_from_a_slot: ["metal-slot/retracts-"],
            an_action_that_is_unregistered_is_not_run: ["metal-table/unregisters-"],
            an_action_has_its_own_word: ["metal-table/takes-over-", "metal-table/registers-"],
            a_broadcast_is_run_once_by_each: [
                "metal-broadcast/reaches-",
                "metal-broadcast/crosses-",
            ],
            a_broadcast_is_of_its_own_action: ["metal-broadcast/unregisters-"],
            an_idle_cpu_is_claimed_for_each_task: ["metal-idle/"],
            a_vector_is_free_when_its_action_runs_nowhere: ["metal-direct/"],
            a_thread_runs_when_it_has_left_its_cpu: ["metal-threads/"],
            a_halted_cpu_is_interrupted_before_other_code_runs: ["metal-kick/"],
            each_cpu_wakes_its_own_waiters: ["metal-percpu/"],
            an_answer_is_that_of_its_request: ["metal-channel/"],
            a_waiter_sleeps_on_a_run_queue: ["metal-condvar/", "metal-mutex/"],
        }
    };
    (model_mutex: $then:ident) => {
        $then! {
            model_mutex:
            excludes: ["shfl-mutex/excludes-"],
            excludes_whatever_the_platform_does: [
                "shfl-mutex/any-platform-",
                "shfl-mutex/spurious-",
                "shfl-mutex/crowded-",
            ],
            excludes_when_waiters_spin: ["shfl-mutex/spins-"],
            hands_over_from_one_to_the_next: ["shfl-mutex/hands-over-"],
            the_lock_is_handed_over: ["shfl-mutex/passes-", "shfl-mutex+light/passes-"],
            cohorts_lose_nobody: ["shfl-mutex/cohorts-", "shfl-mutex+light/cohorts-"],
            sleepers_are_set_aside: ["shfl-mutex/sets-aside-"],
            published_form_excludes: ["shfl-mutex+published/excludes-"],
            keeps_the_lock_for_a_head_that_insists: ["shfl-mutex/fair-", "shfl-mutex+light/fair-"],
            sorts_without_losing_anybody: ["shfl-mutex/sorts-"],
            sorts_by_rank: ["shfl-mutex/ranks-"],
            the_most_urgent_goes_first: ["shfl-mutex/urgent-", "shfl-mutex+light/urgent-"],
            a_policy_changes_as_they_wait: ["shfl-mutex/changes-"],
            what_is_lent_is_given_back: ["shfl-owned/lends-"],
            a_waiter_may_give_up: ["shfl-mutex/gives-up-"],
            light_unlock_loses_no_wake: ["shfl-mutex+light/excludes-"],
            the_backstop_breaks_nothing: ["shfl-mutex/backstop-"],
            survives_an_exhausted_arena: ["shfl-mutex/exhausted-"],
            works_in_the_child_of_a_fork: ["shfl-mutex/inherited-"],
            may_be_destroyed_once_it_was_had: [
                "shfl-mutex/destroyed-",
                "shfl-mutex+light/destroyed-",
            ],
            a_try_is_honest: ["shfl-mutex/tries-"],
            what_threads_are_told_is_one_story: ["shfl-mutex/linearizable-"],
            works_as_shipped: ["shfl-mutex/shipped-", "shfl-mutex+light/shipped-"],
        }
    };
    (model_numa: $then:ident) => {
        $then! {
            model_numa:
            cna: ["cna/", "cna+fair/"],
            cohort: ["c-bo-mcs/", "c-tkt-mcs/"],
            readers_writer_cohort: ["c-rw-wp/"],
            hbo: ["hbo/"],
            hclh: ["hclh/"],
            hmcs: ["hmcs/"],
            ahmcs: ["ahmcs/"],
            malthusian: ["malthusian/", "malthusian+fair/"],
        }
    };
    (model_once: $then:ident) => {
        $then! {
            model_once:
            is_run_once: ["once/runs-"],
            a_run_that_fails_was_none: ["once/fails-"],
            survives_an_exhausted_arena: ["once/exhausted-"],
            works_in_the_child_of_a_fork: ["once/inherited-"],
            works_as_shipped: ["once/shipped-"],
        }
    };
    (model_queue: $then:ident) => {
        $then! {
            model_queue:
            a_deque_is_one_story: ["deque/back-", "deque/front-", "deque/grows-", "deque/laps-"],
            a_deque_of_chase_and_lev_is_one_story: ["chase-lev/"],
            a_deque_of_blocks_keeps_the_order: ["blocks/in-order-"],
            what_is_there_is_seen: ["deque/seen-", "slotted/seen-"],
            what_is_in_a_slot_is_had_once: ["slotted/once-"],
            a_ranked_queue_is_a_queue_of_equals: ["ranked-queue/"],
            what_is_stolen_by_halves_is_had_once: ["deque/half-", "blocks/half-", "blocks/full-"],
            a_relaxed_queue_is_a_bag: ["relaxed-queue/bag-", "relaxed-queue/laps-"],
            a_multi_queue_is_a_bag: ["multi-queue/"],
            a_k_fifo_of_one_is_a_queue: ["k-fifo/queue-"],
            a_k_fifo_keeps_its_bound: ["k-fifo/bounded-"],
            a_size_of_two_loads_is_only_a_hint: ["relaxed-queue/size-"],
            nobody_waits_for_one_that_was_stopped: ["relaxed-queue/passes-", "k-fifo/passes-"],
            an_inbox_is_a_queue: ["inbox/in-order-", "inbox/again-"],
        }
    };
    (model_rw: $then:ident) => {
        $then! {
            model_rw:
            writers_exclude: ["shfl-rw/excludes-"],
            sorts_without_losing_anybody: ["shfl-rw/sorts-"],
            readers_share_and_writers_do_not: ["shfl-rw/shares-", "shfl-rw+recursive/shares-"],
            keeps_the_lock_for_a_head_that_insists: ["shfl-rw/fair-"],
            a_writer_becomes_a_reader: ["shfl-rw/downgrades-"],
            a_reader_becomes_the_writer: ["shfl-rw/upgrades-"],
            a_waiter_may_give_up: ["shfl-rw/gives-up-"],
            a_try_is_honest: ["shfl-rw/tries-", "shfl-rw/inquires-"],
            what_threads_are_told_is_one_story: ["shfl-rw/linearizable-"],
            readers_starve_no_writer: ["shfl-rw/prefers-writers-"],
            the_most_urgent_goes_first: ["shfl-rw/urgent-"],
            a_writer_that_asks_again_is_heard: [
                "shfl-rw/asks-again-",
                "shfl-rw/asks-though-excused-",
            ],
            who_reads_may_read_again: [
                "shfl-rw/recurses-",
                "shfl-rw+recursive/recurses-",
                "shfl-rw+recursive/fair-recurses-",
            ],
            a_head_that_is_late_is_minded: ["shfl-rw/late-head-"],
            readers_of_a_row_come_in_together: ["shfl-rw/row-"],
            the_backstop_breaks_nothing: ["shfl-rw/backstop-"],
            survives_an_exhausted_arena: ["shfl-rw/exhausted-"],
            works_in_the_child_of_a_fork: ["shfl-rw/inherited-"],
            may_be_destroyed_once_it_was_had: ["shfl-rw/destroyed-", "shfl-rw/left-for-good-"],
            works_as_shipped: ["shfl-rw/shipped-", "shfl-rw+recursive/shipped-"],
            readers_sit_by_socket: ["shfl-rw+per-socket/"],
            a_crowd_is_counted_by_socket: ["shfl-rw+crowd/"],
            writers_take_turns: ["shfl-rw+turns/"],
            readers_sleep_at_the_gate: ["shfl-rw+gate/"],
        }
    };
    (model_sched: $then:ident) => {
        $then! {
            model_sched:
            no_worker_rests_while_there_is_work: ["idlers/"],
            each_task_is_handed_out_once: ["crew/"],
            a_seat_has_one_worker_though_it_is_taken: ["hogs/"],
            who_waits_for_a_task_has_what_it_returns: ["task/"],
            who_awaits_is_woken_and_polled: ["future/"],
            what_is_promised_is_had_once: ["promise/"],
            who_waits_for_several_goes_on_when_all_are_done: ["countdown/"],
            what_is_forked_is_run_once_and_seen: ["fork/"],
            what_is_recorded_is_read_whole: ["flight/"],
            a_fiber_that_may_go_on_does: ["fibers/"],
            who_yields_lets_those_go_on_that_it_waits_for: ["yields/"],
            what_is_sent_is_received_once: ["channel/"],
            each_item_of_a_stage_is_served_once: ["stage/"],
            of_several_things_the_first_is_had: ["select/"],
            who_cancels_misses_nobody: ["cancel/"],
        }
    };
    (model_semaphore: $then:ident) => {
        $then! {
            model_semaphore:
            a_permit_has_one_owner: ["semaphore/excludes-"],
            a_release_reaches_who_waits: ["semaphore/signals-"],
            permits_gather_for_who_wants_many: ["semaphore/gathers-"],
            keeps_permits_for_a_head_that_insists: ["semaphore/fair-"],
            a_waiter_may_give_up: ["semaphore/gives-up-"],
            a_try_is_honest: ["semaphore/tries-"],
            what_threads_are_told_is_one_story: ["semaphore/linearizable-"],
            the_backstop_breaks_nothing: ["semaphore/backstop-"],
            survives_an_exhausted_arena: ["semaphore/exhausted-"],
            works_in_the_child_of_a_fork: ["semaphore/inherited-"],
            may_be_destroyed_once_a_permit_was_had: ["semaphore/destroyed-"],
            works_as_shipped: ["semaphore/shipped-"],
        }
    };
    (model_shared: $then:ident) => {
        $then! {
            model_shared:
            a_mutex_excludes: ["shared-mutex/excludes-", "shared-mutex/tries-"],
            a_waiter_of_a_mutex_may_give_up: ["shared-mutex/gives-up-"],
            a_dead_owner_is_found_and_reported: ["shared-mutex/owner-dies-"],
            a_mutex_may_be_destroyed_once_it_was_had: ["shared-mutex/destroyed-"],
            a_notification_reaches_who_waits: ["shared-condvar/"],
            permits_are_had_and_not_lost: ["shared-semaphore/"],
            a_barrier_lets_all_go_or_nobody: ["shared-barrier/"],
            a_set_has_one_taker: ["shared-event/"],
            a_latch_opens_for_all: ["shared-latch/"],
            what_is_sent_reaches_all: ["shared-broadcast/"],
            a_writer_is_alone: ["shared-rwlock/excludes-", "shared-rwlock/shares-"],
            a_writer_that_waits_comes_first: ["shared-rwlock/prefers-", "shared-rwlock/left-"],
            a_free_lock_is_had_by_a_try: ["shared-rwlock/tried-"],
            a_waiter_of_a_readers_writer_lock_may_give_up: ["shared-rwlock/gives-up-"],
            a_dead_writer_is_found_and_reported: ["shared-rwlock/writer-dies-"],
            a_readers_writer_lock_may_be_destroyed_once_it_was_had: ["shared-rwlock/destroyed-"],
            batons_have_one_at_their_table: ["baton/table-excludes-", "baton/owner-dies-"],
            batons_go_round: ["baton/goes-round-"],
            colours_run_on_one_loop_at_a_time: ["colours/"],
            batons_are_safe_from_who_is_given_up_on: ["baton/leaves-late-", "baton/hands-late-"],
        }
    };
    (model_spin: $then:ident) => {
        $then! {
            model_spin:
            excludes: ["shfl-spin/excludes-"],
            excludes_on_a_crowded_machine: ["shfl-spin/crowded-"],
            sorts_without_losing_anybody: ["shfl-spin/sorts-"],
            cohorts_lose_nobody: ["shfl-spin/cohorts-"],
            sorts_by_rank: ["shfl-spin/ranks-"],
            a_policy_changes_as_they_wait: ["shfl-spin/changes-"],
            is_free_after_contention: ["shfl-spin/free-afterwards-"],
            a_try_is_honest: ["shfl-spin/tries-"],
            survives_an_exhausted_arena: ["shfl-spin/exhausted-"],
            works_in_the_child_of_a_fork: ["shfl-spin/inherited-"],
            may_be_destroyed_once_it_was_had: ["shfl-spin/destroyed-"],
            works_as_shipped: ["shfl-spin/shipped-"],
        }
    };
    (model_stock: $then:ident) => {
        $then! {
            model_stock:
            qspinlock: ["qspinlock/"],
            linux_mutex: ["linux-mutex/"],
            linux_rwsem: ["linux-rwsem/"],
        }
    };
}

/// Hands a test for each lock of the registry to the macro `$then`. A test has the name of the
/// lock's file, and runs the models of the lock.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_locks {
    (
        [$then:ident]
        classic: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        $then! { model_classic: $($file: [concat!($name, "/")],)+ }
    };
}

/// Hands the subjects to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! subjects {
    ($then:ident) => {
        $then! {
            model_arena,
            model_barrier,
            model_boost,
            model_chunks,
            model_classic,
            model_clock,
            model_condvar,
            model_cst,
            model_defects,
            model_delegation,
            model_events,
            model_message,
            model_metal,
            model_mutex,
            model_numa,
            model_once,
            model_queue,
            model_rw,
            model_sched,
            model_semaphore,
            model_shared,
            model_spin,
            model_stock,
        }
    };
}

/// A test, as `mutants.toml` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The name, `SUBJECT::test`.
    pub name: &'static str,
    /// The test runs the models whose names begin with one of these, the long ones by lot.
    pub prefixes: &'static [&'static str],
}

macro_rules! table {
    ($subject:ident: $($test:ident: $prefixes:expr,)+) => {
        &[$(Test {
            name: concat!(stringify!($subject), "::", stringify!($test)),
            prefixes: &$prefixes,
        }),+]
    };
}

macro_rules! tables {
    ($($subject:ident,)+) => {
        /// The tests, by subject.
        pub const TESTS: &[&[Test]] = &[$(tests!($subject: table)),+];
    };
}

subjects!(tables);

impl Test {
    /// Returns whether the test runs the model of this name.
    #[must_use]
    pub fn runs(&self, model: &str) -> bool {
        self.prefixes.iter().any(|prefix| model.starts_with(prefix))
    }
}
