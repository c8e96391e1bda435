/* antiphon_loop.h: an event loop for what must be on time and computes all the time: timers when
 * they are due, and then the most important work, in steps that end when something is due.
 *
 *	static int beat(antiphon_loop_t *loop, void *data, uint64_t *when)
 *	{
 *		play(data);
 *		*when += 10000000;
 *		return ANTIPHON_LOOP_AT;
 *	}
 *
 *	antiphon_loop_event_t event = { antiphon_loop_now_ns(), ANTIPHON_LOOP_TIMER, 0, beat };
 *	antiphon_loop_create(&loop);
 *	antiphon_loop_submit(loop, &event, NULL);
 *	antiphon_loop_run(loop);
 *
 * A loop is of the thread that has made it, which calls all functions of it but those of handles
 * and lookouts; these are for all threads. Times are nanoseconds of CLOCK_MONOTONIC. No callback is
 * preempted by another one. docs/event-loop.md has the order of things, and what Rust alone has. */

#ifndef ANTIPHON_LOOP_H
#define ANTIPHON_LOOP_H

#include "antiphon_coop.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct antiphon_loop antiphon_loop_t;
typedef struct antiphon_loop_handle antiphon_loop_handle_t;
typedef struct antiphon_loop_lookout antiphon_loop_lookout_t;

/* When an event is called first. */
enum {
	/* From `when` on, before all that is not a timer. Never dropped, however late. */
	ANTIPHON_LOOP_TIMER = 0,
	/* When no timer is due: `when` is its user virtual time, of which the least is first. */
	ANTIPHON_LOOP_WORK = 1,
	/* As work, when it was woken, or its file is ready. */
	ANTIPHON_LOOP_WOKEN = 2
};

/* What becomes of an event that was called. */
enum {
	/* It is over. */
	ANTIPHON_LOOP_DONE = 0,
	/* It is called again as work; `*when` is its user virtual time. */
	ANTIPHON_LOOP_MORE = 1,
	/* It is called again from `*when` on, as a timer. */
	ANTIPHON_LOOP_AT = 2,
	/* It is called again when it is woken. */
	ANTIPHON_LOOP_ASLEEP = 3
};

/* What of a file one waits for; joined by |. */
enum {
	ANTIPHON_LOOP_READ = 1,
	ANTIPHON_LOOP_WRITE = 2,
	/* Tell when it becomes ready, and not as long as it is. */
	ANTIPHON_LOOP_EDGE = 4
};

/* What is counted by time. */
enum {
	/* How long after their release timers were called. */
	ANTIPHON_LOOP_LATE = 0,
	/* How long calls took. */
	ANTIPHON_LOOP_RAN = 1
};

/* What keeps a loop from being on time. */
enum {
	/* A callback took longer than `long_ns`. */
	ANTIPHON_LOOP_LONG = 0,
	/* For `behind_ns` there was always a timer due: timers alone want more than there is. Said
	 * once, until that is over. */
	ANTIPHON_LOOP_BEHIND = 1
};

typedef struct antiphon_loop_trouble {
	/* Of the event; of which most was, if the loop is behind. */
	const char *name;
	/* How long the callback took; of all that time, how much its timers. */
	uint64_t ran_ns;
	/* How long ago the loop fell behind, or 0. */
	uint64_t for_ns;
	int what;
	int kept;
} antiphon_loop_trouble_t;

/* What a loop goes by. Zero: what is in brackets. */
typedef struct antiphon_loop_options {
	/* A loop that is never idle looks at its files each so often (250 us). */
	uint64_t look_ns;
	/* It goes on for so long between two polls that nobody has set a time for (100 us). */
	uint64_t poll_ns;
	/* A callback that takes longer is trouble; what goes by antiphon_loop_is_over takes half of
	 * that at the most (1 ms). */
	uint64_t long_ns;
	/* For so long a timer may always be due (200 ms). */
	uint64_t behind_ns;
	/* Is told of trouble, on the loop's thread, after the callback. It calls no function of the
	 * loop, but of handles. NULL: nobody is told. */
	void (*trouble)(void *data, const antiphon_loop_trouble_t *trouble);
	void *data;
	/* 0. */
	uint64_t kept;
} antiphon_loop_options_t;

/* What a loop is to do; copied. */
typedef struct antiphon_loop_event {
	/* As `due` has it. */
	uint64_t when;
	int due;
	/* 0. */
	int kept;
	/* `*when` is the release, of a timer that is due, else the user virtual time. Returns what
	 * becomes of the event. It may call functions of the loop, but not run it. */
	int (*call)(antiphon_loop_t *loop, void *data, uint64_t *when);
	/* Called once, when the event is over, was cancelled, or goes with the loop; NULL: nothing
	 * is. It calls no function of the loop. */
	void (*end)(void *data);
	void *data;
	/* As what it counts: a string that is never freed, in UTF-8; NULL: "event". */
	const char *name;
} antiphon_loop_event_t;

/* What a turn has come to. */
typedef struct antiphon_loop_turn {
	/* When there is something to do: 0 for now, UINT64_MAX for when a file or a handle says so. */
	uint64_t next_ns;
	/* How many callbacks were called. */
	uint32_t called;
	/* -1: the loop goes on; else as of antiphon_loop_run. */
	int end;
} antiphon_loop_turn_t;

/* What is known of the events of a name. */
typedef struct antiphon_loop_stats {
	uint64_t called;
	/* Calls that took more than `long_ns`. */
	uint64_t long_calls;
	uint64_t timers;
	/* How long after their release timers were called. */
	uint64_t late_p50_ns;
	uint64_t late_p99_ns;
	uint64_t late_max_ns;
	/* How long calls took. */
	uint64_t ran_p99_ns;
	uint64_t ran_max_ns;
} antiphon_loop_stats_t;

/* So many times were not above `upto_ns`, and above that of the bucket before. */
typedef struct antiphon_loop_bucket {
	uint64_t upto_ns;
	uint64_t count;
} antiphon_loop_bucket_t;

/* The callback that a loop was found in. */
typedef struct antiphon_loop_sighting {
	/* NULL: the loop has more than 65534 names. */
	const char *name;
	/* How long it has been running. */
	uint64_t for_ns;
} antiphon_loop_sighting_t;

/* What the system says: EMFILE. The calling thread's timer slack is a nanosecond from now on. */
ANTIPHON_MUST_USE
int antiphon_loop_create(antiphon_loop_t **loop) ANTIPHON_NOEXCEPT;

/* The same, with options. EINVAL: `kept` is not 0. */
ANTIPHON_MUST_USE
int antiphon_loop_create_with(antiphon_loop_t **loop,
			      const antiphon_loop_options_t *options) ANTIPHON_NOEXCEPT;

/* Lets go of the loop and its events, and leaves its tier. Not in a callback. */
void antiphon_loop_destroy(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Has the loop share its CPU by a tier of antiphon_coop.h from now on, also from a callback; what
 * was before is left. Called when the loop is about to run: who has joined and does not poll is in
 * others' way. `part` is NULL, or what the loop wants; of it ANTIPHON_COOP_BOOST minds the domain
 * in a group only. EINVAL: also no such tier. EPERM: it needs a right, as antiphon_coop_available
 * says. EAGAIN: there is no thread for the helper. Else as antiphon_coop_join. Where it fails, the
 * loop goes on as it was; or, as it comes to joining last, in no tier.
 *
 * A loop that is boosted goes back to ANTIPHON_COOP_ALONE before the program calls exec: the next
 * one might stay raised. A loop inside another one polls in antiphon_loop_turn only, and sleeps
 * elsewhere; ANTIPHON_COOP_BATON demotes it for that. There the outer loop joins, and polls in
 * halves. */
ANTIPHON_MUST_USE
int antiphon_loop_cooperate(antiphon_loop_t *loop, int tier,
			    const antiphon_coop_t *part) ANTIPHON_NOEXCEPT;

/* The loop's tier, and what has become of it there. */
void antiphon_loop_coop_status(const antiphon_loop_t *loop,
			       antiphon_coop_status_t *status) ANTIPHON_NOEXCEPT;

/* Has the loop do something. `id` is NULL, or where its number goes. EINVAL: `due`, `kept`, `call`
 * or `name` is not as above; then `end` is not called. */
ANTIPHON_MUST_USE
int antiphon_loop_submit(antiphon_loop_t *loop, const antiphon_loop_event_t *event,
			 uint64_t *id) ANTIPHON_NOEXCEPT;

/* Has the loop do something when a file is ready, which the caller has open until the event is
 * over. EINVAL: as above, or the ways; else what the system says, and `end` was called: EPERM if
 * the file is always ready, EEXIST if it is another event's already. */
ANTIPHON_MUST_USE
int antiphon_loop_watch(antiphon_loop_t *loop, int fd, int ways,
			const antiphon_loop_event_t *event, uint64_t *id) ANTIPHON_NOEXCEPT;

/* ENOENT: there is no such event any more. */
int antiphon_loop_cancel(antiphon_loop_t *loop, uint64_t id) ANTIPHON_NOEXCEPT;

/* Has an event called as work, unless it is to be already. ENOENT. */
int antiphon_loop_wake(antiphon_loop_t *loop, uint64_t id) ANTIPHON_NOEXCEPT;

/* Has the loop stop after the callback that it is in, or as soon as it is run. */
void antiphon_loop_stop(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Does what is to be done, and waits for more. 0: there are no events left, and no handles; 1: it
 * was stopped; EDEADLK: the caller is in a callback. */
int antiphon_loop_run(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Calls up to so many callbacks that are to be called now, and does not wait: for a loop inside
 * another one. EDEADLK. */
ANTIPHON_MUST_USE
int antiphon_loop_turn(antiphon_loop_t *loop, uint32_t most,
		       antiphon_loop_turn_t *turn) ANTIPHON_NOEXCEPT;

/* A file that is readable when there is something to do, after a turn; the loop's. Who is told of
 * that once only takes turns until one has called nothing. -1: the caller is in a callback. */
int antiphon_loop_fd(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: what its file has said, ANTIPHON_LOOP_READ and ANTIPHON_LOOP_WRITE. */
int antiphon_loop_ready(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: until when it may go on. */
uint64_t antiphon_loop_until_ns(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: whether it is to return soon, as its time is over or something more important is
 * there. Costs a look at the clock. */
int antiphon_loop_is_over(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* The time. */
uint64_t antiphon_loop_now_ns(void) ANTIPHON_NOEXCEPT;

/* ENOENT: there was no event of that name. */
ANTIPHON_MUST_USE
int antiphon_loop_stats(const antiphon_loop_t *loop, const char *name,
			antiphon_loop_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Of the events of that name, the buckets that are not empty, the shortest first, known within 3 %.
 * `of` is ANTIPHON_LOOP_LATE or ANTIPHON_LOOP_RAN. Writes no more than there is `room` for, and to
 * `count` how many there are. ENOENT, EINVAL: `of`. */
ANTIPHON_MUST_USE
int antiphon_loop_buckets(const antiphon_loop_t *loop, const char *name, int of,
			  antiphon_loop_bucket_t *buckets, size_t room,
			  size_t *count) ANTIPHON_NOEXCEPT;

/* Begins to count anew. */
void antiphon_loop_reset_stats(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* By which other threads see what the loop is at, as watchdogs; it keeps no loop waiting. */
antiphon_loop_lookout_t *
antiphon_loop_lookout_create(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

void antiphon_loop_lookout_destroy(antiphon_loop_lookout_t *lookout) ANTIPHON_NOEXCEPT;

/* ENOENT: the loop is in no callback, or gone. */
ANTIPHON_MUST_USE
int antiphon_loop_lookout_look(const antiphon_loop_lookout_t *lookout,
			       antiphon_loop_sighting_t *sighting) ANTIPHON_NOEXCEPT;

/* By which other threads have the loop do something, and by which the loop waits for them. */
antiphon_loop_handle_t *antiphon_loop_handle_create(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

void antiphon_loop_handle_destroy(antiphon_loop_handle_t *handle) ANTIPHON_NOEXCEPT;

/* As antiphon_loop_submit; `call` and `end` are called on the loop's thread. ESRCH: the loop is
 * gone, and `end` was called here. */
ANTIPHON_MUST_USE
int antiphon_loop_handle_submit(const antiphon_loop_handle_t *handle,
				const antiphon_loop_event_t *event, uint64_t *id) ANTIPHON_NOEXCEPT;

/* ESRCH, as the next two. */
int antiphon_loop_handle_cancel(const antiphon_loop_handle_t *handle,
				uint64_t id) ANTIPHON_NOEXCEPT;
int antiphon_loop_handle_wake(const antiphon_loop_handle_t *handle, uint64_t id) ANTIPHON_NOEXCEPT;
int antiphon_loop_handle_stop(const antiphon_loop_handle_t *handle) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_loop_event_t, 48, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_turn_t, 16, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_stats_t, 64, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_trouble_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_options_t, 56, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_bucket_t, 16, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_loop_sighting_t, 16, 8);

#endif
