/* antiphon_split.h: timers in a thread of their own, beside the threads that work. It hardly runs,
 * and so is let run at once: by its short slice (T2), or by a real-time priority (T1b).
 *
 *	antiphon_split_create(&split, NULL);
 *	antiphon_split_worker_create(&worker, split);
 *	antiphon_split_submit(split, frame_ns, show, NULL, frame, NULL);
 *	decode(next);
 *
 * What is called so runs beside the work, at any moment of it, and must not wait for what a worker
 * has. Where that is too hard, antiphon_loop_cooperate has a loop on time with all in one thread.
 * Times are nanoseconds of CLOCK_MONOTONIC. In the child of a fork nothing is called. */

#ifndef ANTIPHON_SPLIT_H
#define ANTIPHON_SPLIT_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct antiphon_split antiphon_split_t;
typedef struct antiphon_split_timer antiphon_split_timer_t;
typedef struct antiphon_split_worker antiphon_split_worker_t;

/* Zero: what is in brackets. No slice is above 10 seconds. */
typedef struct antiphon_split_options {
	/* Of the thread of the timers: the shorter, the sooner it runs (100 us). */
	uint64_t timer_slice_ns;
	/* Of each worker (20 ms). */
	uint64_t worker_slice_ns;
	/* Of the thread of the timers, up to 99: T1b (it shares time: T2). */
	uint32_t priority;
	/* 0. */
	uint32_t kept;
} antiphon_split_options_t;

/* How late timers were called, within a fourth. */
typedef struct antiphon_split_stats {
	uint64_t timers;
	uint64_t late_p50_ns;
	uint64_t late_p99_ns;
	uint64_t late_max_ns;
	/* What it is at present: ANTIPHON_COOP_SPLIT or ANTIPHON_COOP_RT_SPLIT. */
	int tier;
	int kept;
} antiphon_split_stats_t;

/* Starts the thread, where the calling thread may run. `options` is NULL, or as above. EPERM: not
 * that priority. EOPNOTSUPP: no slices, which are there since Linux 6.12. EAGAIN: no thread.
 * EINVAL: a number is not as above. */
ANTIPHON_MUST_USE
int antiphon_split_create(antiphon_split_t **split,
			  const antiphon_split_options_t *options) ANTIPHON_NOEXCEPT;

/* Waits for what is being called, but in a callback; what is not due yet is not called. */
void antiphon_split_destroy(antiphon_split_t *split) ANTIPHON_NOEXCEPT;

/* Has `call(data, late_ns)` called from that time on, on the thread of the timers. `end(data)` is
 * called once: there, after that; or some time after the timer was cancelled, or went with the
 * rest, there or by who submits or destroys; NULL: nothing is. Never waits. `timer` is NULL, or
 * where goes by what it is cancelled. All threads may submit, and callbacks. */
void antiphon_split_submit(antiphon_split_t *split, uint64_t release_ns,
			   void (*call)(void *data, uint64_t late_ns), void (*end)(void *data),
			   void *data, antiphon_split_timer_t **timer) ANTIPHON_NOEXCEPT;

/* ENOENT: it is too late; it may be being called. Never waits. */
int antiphon_split_timer_cancel(antiphon_split_timer_t *timer) ANTIPHON_NOEXCEPT;

/* Lets go of it; the timer is called all the same. */
void antiphon_split_timer_destroy(antiphon_split_timer_t *timer) ANTIPHON_NOEXCEPT;

/* Changes the priority at once; 0: it shares time. EPERM, EINVAL. */
int antiphon_split_set_priority(antiphon_split_t *split, uint32_t priority) ANTIPHON_NOEXCEPT;

void antiphon_split_stats(const antiphon_split_t *split,
			  antiphon_split_stats_t *stats) ANTIPHON_NOEXCEPT;

/* The calling thread has the long slice until it destroys the worker. EOPNOTSUPP; EINVAL: it does
 * not share time. */
ANTIPHON_MUST_USE
int antiphon_split_worker_create(antiphon_split_worker_t **worker,
				 const antiphon_split_t *split) ANTIPHON_NOEXCEPT;

/* Called by the worker's thread. */
void antiphon_split_worker_destroy(antiphon_split_worker_t *worker) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_split_options_t, 24, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_split_stats_t, 40, 8);

#endif
