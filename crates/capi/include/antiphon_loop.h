/* antiphon_loop.h: an event loop for programs that have deadlines and compute all the time. It runs
 * timers when they are due, and otherwise the most important work, in steps that end when a timer
 * is due.
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
 * A loop belongs to the thread that has made it: only that thread calls its functions, except those
 * of handles and lookouts, which are for all threads. Times are nanoseconds of CLOCK_MONOTONIC. No
 * callback is preempted by another one. docs/event-loop.md has the order of calls, and features
 * that only Rust has. */

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
	/* From `when` on, before all work. Never dropped, however late. */
	ANTIPHON_LOOP_TIMER = 0,
	/* When no timer is due: `when` is its user virtual time; the least goes first. */
	ANTIPHON_LOOP_WORK = 1,
	/* As work, after it was woken or its file became ready. */
	ANTIPHON_LOOP_WOKEN = 2
};

/* Results of a callback. */
enum {
	/* The event is over. */
	ANTIPHON_LOOP_DONE = 0,
	/* Call it again as work; `*when` is its user virtual time. */
	ANTIPHON_LOOP_MORE = 1,
	/* Call it again as a timer, from `*when` on. */
	ANTIPHON_LOOP_AT = 2,
	/* Call it again when it is woken. */
	ANTIPHON_LOOP_ASLEEP = 3
};

/* Ways to wait for a file; joined by |. */
enum {
	ANTIPHON_LOOP_READ = 1,
	ANTIPHON_LOOP_WRITE = 2,
	/* Report when it becomes ready, not as long as it is (edge-triggered). */
	ANTIPHON_LOOP_EDGE = 4
};

/* Histograms of times. */
enum {
	/* How late timers were called. */
	ANTIPHON_LOOP_LATE = 0,
	/* How long callbacks took. */
	ANTIPHON_LOOP_RAN = 1
};

/* Reasons why a loop is not on time. */
enum {
	/* A callback took longer than `long_ns`. */
	ANTIPHON_LOOP_LONG = 0,
	/* For `behind_ns` there was always a timer due: timers alone want more CPU time than there
	 * is. Reported once, until that is over. */
	ANTIPHON_LOOP_BEHIND = 1
};

typedef struct antiphon_loop_trouble {
	/* The name of the event; if the loop is behind, of the event that took the most time. */
	const char *name;
	/* How long the callback took; if the loop is behind, how long that event's timers took. */
	uint64_t ran_ns;
	/* How long ago the loop fell behind, or 0. */
	uint64_t for_ns;
	int what;
	int kept;
} antiphon_loop_trouble_t;

/* Options of a loop. Zero means the default in brackets. */
typedef struct antiphon_loop_options {
	/* Period at which a loop that is never idle checks its files (250 us). */
	uint64_t look_ns;
	/* Least time between two polls for which no time was set (100 us). */
	uint64_t poll_ns;
	/* A callback that takes longer is reported. A callback that asks antiphon_loop_is_over is
	 * given at most half of this (1 ms). */
	uint64_t long_ns;
	/* The time for which a timer may always be due before that is reported (200 ms). */
	uint64_t behind_ns;
	/* Called on the loop's thread, after the callback, for each trouble. It may call functions
	 * of handles, but not of the loop. NULL: troubles are not reported. */
	void (*trouble)(void *data, const antiphon_loop_trouble_t *trouble);
	void *data;
	/* Must be 0. */
	uint64_t kept;
} antiphon_loop_options_t;

/* An event; copied. */
typedef struct antiphon_loop_event {
	/* A release or user virtual time, depending on `due`. */
	uint64_t when;
	int due;
	/* Must be 0. */
	int kept;
	/* The callback. `*when` is the release of a timer that is due, else the user virtual time.
	 * Returns one of the results above. It may call functions of the loop, but not run it. */
	int (*call)(antiphon_loop_t *loop, void *data, uint64_t *when);
	/* Called once, when the event is over, was cancelled, or ends with the loop, unless NULL. It
	 * must call no function of the loop. */
	void (*end)(void *data);
	void *data;
	/* The name under which it is counted: a string that is never freed, in UTF-8; NULL:
	 * "event". */
	const char *name;
} antiphon_loop_event_t;

/* The result of a turn. */
typedef struct antiphon_loop_turn {
	/* When there is something to do: 0: now; UINT64_MAX: when a file or a handle says so. */
	uint64_t next_ns;
	/* The number of callbacks that were called. */
	uint32_t called;
	/* -1: the loop goes on; else a result of antiphon_loop_run. */
	int end;
} antiphon_loop_turn_t;

/* Counts of the events of one name. */
typedef struct antiphon_loop_stats {
	uint64_t called;
	/* Calls that took more than `long_ns`. */
	uint64_t long_calls;
	uint64_t timers;
	/* How late timers were called. */
	uint64_t late_p50_ns;
	uint64_t late_p99_ns;
	uint64_t late_max_ns;
	/* How long callbacks took. */
	uint64_t ran_p99_ns;
	uint64_t ran_max_ns;
} antiphon_loop_stats_t;

/* A bucket of a histogram: `count` times were at most `upto_ns`, and above the limit of the
 * previous bucket. */
typedef struct antiphon_loop_bucket {
	uint64_t upto_ns;
	uint64_t count;
} antiphon_loop_bucket_t;

/* The callback in which a loop was found. */
typedef struct antiphon_loop_sighting {
	/* NULL: the loop has more than 65534 names. */
	const char *name;
	/* How long it has been running. */
	uint64_t for_ns;
} antiphon_loop_sighting_t;

/* Makes a loop. EMFILE and other errors of the system. Sets the calling thread's timer slack to a
 * nanosecond. */
ANTIPHON_MUST_USE
int antiphon_loop_create(antiphon_loop_t **loop) ANTIPHON_NOEXCEPT;

/* Makes a loop with options. EINVAL: `kept` is not 0. */
ANTIPHON_MUST_USE
int antiphon_loop_create_with(antiphon_loop_t **loop,
			      const antiphon_loop_options_t *options) ANTIPHON_NOEXCEPT;

/* Destroys the loop and its events, and leaves its tier. Not in a callback. */
void antiphon_loop_destroy(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Makes the loop share its CPU by a tier of antiphon_coop.h from now on; may be called from a
 * callback. The former tier is left. Call it when the loop is about to run: a member that has
 * joined and does not poll delays others. `part` is NULL, or what the loop wants;
 * ANTIPHON_COOP_BOOST uses its domain only in a group. EINVAL: also no such tier. EPERM: a right is
 * missing, see antiphon_coop_available. EAGAIN: no thread could be made for the helper. Other
 * errors are those of antiphon_coop_join. If it fails, the loop goes on as before, or in no tier if
 * joining, the last step, has failed.
 *
 * Before the program calls exec, a boosted loop must go back to ANTIPHON_COOP_ALONE: the next
 * program might stay raised. A loop inside another one polls in antiphon_loop_turn only, and sleeps
 * elsewhere, for which ANTIPHON_COOP_BATON demotes it. There the outer loop joins, and polls in
 * halves. */
ANTIPHON_MUST_USE
int antiphon_loop_cooperate(antiphon_loop_t *loop, int tier,
			    const antiphon_coop_t *part) ANTIPHON_NOEXCEPT;

/* Writes the loop's tier, and its state there. */
void antiphon_loop_coop_status(const antiphon_loop_t *loop,
			       antiphon_coop_status_t *status) ANTIPHON_NOEXCEPT;

/* Submits an event. Stores its number in `id` unless that is NULL. EINVAL: `due`, `kept`, `call` or
 * `name` is wrong; then `end` is not called. */
ANTIPHON_MUST_USE
int antiphon_loop_submit(antiphon_loop_t *loop, const antiphon_loop_event_t *event,
			 uint64_t *id) ANTIPHON_NOEXCEPT;

/* Submits an event for a file, which the caller keeps open until the event is over. EINVAL: see
 * antiphon_loop_submit, or wrong `ways`. After other errors of the system `end` was called: EPERM:
 * the file is always ready; EEXIST: it belongs to another event already. */
ANTIPHON_MUST_USE
int antiphon_loop_watch(antiphon_loop_t *loop, int fd, int ways,
			const antiphon_loop_event_t *event, uint64_t *id) ANTIPHON_NOEXCEPT;

/* Cancels an event. ENOENT: the event no longer exists. */
int antiphon_loop_cancel(antiphon_loop_t *loop, uint64_t id) ANTIPHON_NOEXCEPT;

/* Wakes an event: it is called as work, unless it is due to be already. ENOENT. */
int antiphon_loop_wake(antiphon_loop_t *loop, uint64_t id) ANTIPHON_NOEXCEPT;

/* Stops the loop after the present callback, or as soon as it is run. */
void antiphon_loop_stop(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Runs the loop. Returns 0 if there are no events and no handles left, 1 if the loop was stopped,
 * EDEADLK if the caller is in a callback. */
int antiphon_loop_run(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Calls up to `most` callbacks that are due now, and does not wait: for a loop inside another one.
 * EDEADLK. */
ANTIPHON_MUST_USE
int antiphon_loop_turn(antiphon_loop_t *loop, uint32_t most,
		       antiphon_loop_turn_t *turn) ANTIPHON_NOEXCEPT;

/* Returns a file that is readable, after a turn, when there is something to do; it belongs to the
 * loop. An outer loop that reports readiness only once takes turns until one has called nothing.
 * -1: the caller is in a callback. */
int antiphon_loop_fd(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: returns the readiness of its file, ANTIPHON_LOOP_READ and ANTIPHON_LOOP_WRITE. */
int antiphon_loop_ready(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: returns the time until which it may go on. */
uint64_t antiphon_loop_until_ns(const antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* In a callback: returns 1 if it should return soon, because its time is over or something more
 * important is there. Costs a clock reading. */
int antiphon_loop_is_over(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Returns the time, in nanoseconds of CLOCK_MONOTONIC. */
uint64_t antiphon_loop_now_ns(void) ANTIPHON_NOEXCEPT;

/* Writes the counts of the events of one name. ENOENT: there was no event of that name. */
ANTIPHON_MUST_USE
int antiphon_loop_stats(const antiphon_loop_t *loop, const char *name,
			antiphon_loop_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Writes the histogram of the events of one name: the buckets that are not empty, the shortest
 * times first, within 3 %. `of` is ANTIPHON_LOOP_LATE or ANTIPHON_LOOP_RAN. Writes at most `room`
 * buckets, and stores their full number in `count`. ENOENT. EINVAL: wrong `of`. */
ANTIPHON_MUST_USE
int antiphon_loop_buckets(const antiphon_loop_t *loop, const char *name, int of,
			  antiphon_loop_bucket_t *buckets, size_t room,
			  size_t *count) ANTIPHON_NOEXCEPT;

/* Resets all counts. */
void antiphon_loop_reset_stats(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

/* Makes a handle by which other threads, such as watchdogs, see which callback runs. The loop does
 * not wait for it. */
antiphon_loop_lookout_t *
antiphon_loop_lookout_create(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

void antiphon_loop_lookout_destroy(antiphon_loop_lookout_t *lookout) ANTIPHON_NOEXCEPT;

/* ENOENT: the loop is in no callback, or was destroyed. */
ANTIPHON_MUST_USE
int antiphon_loop_lookout_look(const antiphon_loop_lookout_t *lookout,
			       antiphon_loop_sighting_t *sighting) ANTIPHON_NOEXCEPT;

/* Makes a handle by which other threads submit events; the loop does not end while a handle
 * exists. */
antiphon_loop_handle_t *antiphon_loop_handle_create(antiphon_loop_t *loop) ANTIPHON_NOEXCEPT;

void antiphon_loop_handle_destroy(antiphon_loop_handle_t *handle) ANTIPHON_NOEXCEPT;

/* Same as antiphon_loop_submit; `call` and `end` are called on the loop's thread. ESRCH: the loop
 * was destroyed, and `end` was called on the calling thread. */
ANTIPHON_MUST_USE
int antiphon_loop_handle_submit(const antiphon_loop_handle_t *handle,
				const antiphon_loop_event_t *event, uint64_t *id) ANTIPHON_NOEXCEPT;

/* The following three: ESRCH: the loop was destroyed. */
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
