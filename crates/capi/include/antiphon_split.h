/* antiphon_split.h: timers in a separate thread, beside threads that work. The timer thread runs
 * little, so the kernel runs it at once: because of its short slice (T2) or a real-time priority
 * (T1b).
 *
 *	antiphon_split_create(&split, NULL);
 *	antiphon_split_worker_create(&worker, split);
 *	antiphon_split_submit(split, frame_ns, show, NULL, frame, NULL);
 *	decode(next);
 *
 * Callbacks run beside the work, at any moment, and must not wait for anything that a worker holds.
 * If that is too restrictive, antiphon_loop_cooperate keeps a loop on time with everything in one
 * thread. Times are nanoseconds of CLOCK_MONOTONIC. In the child of a fork no callback is
 * called. */

#ifndef ANTIPHON_SPLIT_H
#define ANTIPHON_SPLIT_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct antiphon_split antiphon_split_t;
typedef struct antiphon_split_timer antiphon_split_timer_t;
typedef struct antiphon_split_worker antiphon_split_worker_t;

/* Options. Zero means the default in brackets. No slice may be above 10 seconds. */
typedef struct antiphon_split_options {
	/* Slice of the timer thread: the shorter, the sooner it runs (100 us). */
	uint64_t timer_slice_ns;
	/* Slice of each worker (20 ms). */
	uint64_t worker_slice_ns;
	/* Real-time priority of the timer thread, up to 99: T1b (none: T2). */
	uint32_t priority;
	/* Must be 0. */
	uint32_t kept;
} antiphon_split_options_t;

/* How late timers were called, to within a quarter. */
typedef struct antiphon_split_stats {
	uint64_t timers;
	uint64_t late_p50_ns;
	uint64_t late_p99_ns;
	uint64_t late_max_ns;
	/* The present tier: ANTIPHON_COOP_SPLIT or ANTIPHON_COOP_RT_SPLIT. */
	int tier;
	int kept;
} antiphon_split_stats_t;

/* Starts the timer thread, on the CPUs of the calling thread. `options` may be NULL. EPERM: the
 * priority is not permitted. EOPNOTSUPP: the kernel has no slices (Linux 6.12). EAGAIN: no thread
 * could be made.
 * EINVAL: an option is wrong. */
ANTIPHON_MUST_USE
int antiphon_split_create(antiphon_split_t **split,
			  const antiphon_split_options_t *options) ANTIPHON_NOEXCEPT;

/* Waits for a callback that runs, unless the caller is one. Timers that are not due yet are not
 * called. */
void antiphon_split_destroy(antiphon_split_t *split) ANTIPHON_NOEXCEPT;

/* Calls call(data, late_ns) from `release_ns` on, on the timer thread. end(data), unless `end` is
 * NULL, is called once: on the timer thread after the callback; or some time after the timer was
 * cancelled or the split destroyed, on the timer thread or a thread that submits or destroys. Never
 * waits. Stores a handle to cancel the timer in `timer` unless that is NULL. All threads may
 * submit, and so may callbacks. */
void antiphon_split_submit(antiphon_split_t *split, uint64_t release_ns,
			   void (*call)(void *data, uint64_t late_ns), void (*end)(void *data),
			   void *data, antiphon_split_timer_t **timer) ANTIPHON_NOEXCEPT;

/* Cancels the timer. ENOENT: too late, its callback may be running. Never waits. */
int antiphon_split_timer_cancel(antiphon_split_timer_t *timer) ANTIPHON_NOEXCEPT;

/* Frees the handle; the timer is still called. */
void antiphon_split_timer_destroy(antiphon_split_timer_t *timer) ANTIPHON_NOEXCEPT;

/* Changes the priority at once; 0: no real-time priority. EPERM, EINVAL. */
int antiphon_split_set_priority(antiphon_split_t *split, uint32_t priority) ANTIPHON_NOEXCEPT;

void antiphon_split_stats(const antiphon_split_t *split,
			  antiphon_split_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Gives the calling thread the long slice until it destroys the worker. EOPNOTSUPP. EINVAL: the
 * thread has a real-time priority. */
ANTIPHON_MUST_USE
int antiphon_split_worker_create(antiphon_split_worker_t **worker,
				 const antiphon_split_t *split) ANTIPHON_NOEXCEPT;

/* Must be called by the worker's thread. */
void antiphon_split_worker_destroy(antiphon_split_worker_t *worker) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_split_options_t, 24, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_split_stats_t, 40, 8);

#endif
