/* antiphon_event.h: signals between threads: events, latches, event counts, broadcasts.
 *
 *	static antiphon_event_t ready = ANTIPHON_EVENT_INIT;
 *
 *	antiphon_event_set(&ready);		one thread
 *	antiphon_event_wait(&ready);		another
 *
 * | type                   | signals                              | bytes, alignment |
 * |------------------------|--------------------------------------|------------------|
 * | antiphon_event_t       | one thread, and resets itself        | 192, 64          |
 * | antiphon_latch_t       | all, once the count has reached zero | 24, 8            |
 * | antiphon_event_count_t | waiters for a condition in your data | 16, 8            |
 * | antiphon_broadcast_t   | all that wait, any number of times   | 1152, 128        |
 *
 * The rules of antiphon.h hold, with these exceptions:
 *
 * - No function may be called in signal handlers: sleepers are listed under a lock, and a handler
 *   that has interrupted its owner waits for ever. A handler may set, count down and send the
 *   objects of antiphon_pshared_event.h, which also work for the threads of one process.
 * - If a process forks while another thread is in a call on an object, the object may be locked in
 *   the child, where the next call waits for ever. The child initialises the object again, or the
 *   parent forks while no thread is in a call.
 * - malloc does not align memory enough for events and broadcasts; aligned_alloc does.
 *
 * What was done before a set, count down, notification or send happens before the return of the
 * wait that it ends. A waiter first spins for as long as a sleep costs, if enough CPUs are idle,
 * and then sleeps; the signalling thread makes a system call only if a thread sleeps.
 *
 * Memory may be reused once all waits have returned, even if the call that ended them has not. */

#ifndef ANTIPHON_EVENT_H
#define ANTIPHON_EVENT_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* An event that resets itself, on cache lines of its own. */
typedef struct antiphon_event {
	ANTIPHON_ALIGNED(64) uint64_t antiphon_private[24];
} antiphon_event_t;

/* A latch. */
typedef struct antiphon_latch {
	uint32_t antiphon_private[2];
	uint64_t antiphon_waiters[2];
} antiphon_latch_t;

/* An event count. */
typedef struct antiphon_event_count {
	uint64_t antiphon_private[2];
} antiphon_event_count_t;

/* A prepared wait. */
typedef struct antiphon_event_key {
	uint64_t antiphon_private[4];
} antiphon_event_key_t;

/* A broadcast. */
typedef struct antiphon_broadcast {
	ANTIPHON_ALIGNED(128) uint64_t antiphon_private[144];
} antiphon_broadcast_t;

/* clang-format off */
#define ANTIPHON_EVENT_INIT         { { 0 } }
#define ANTIPHON_EVENT_COUNT_INIT   { { 0, 0 } }
#define ANTIPHON_EVENT_KEY_INIT     { { 0, 0, 0, 0 } }
#define ANTIPHON_BROADCAST_INIT     { { 0 } }
/* Counts down from `count`, at most ANTIPHON_LATCH_MAX. */
#define ANTIPHON_LATCH_INIT(count)  { { 0, (count) - 1u }, { 0, 0 } }
/* clang-format on */

/* --- event. A set releases one waiter, the nearest of the first few; if no thread waits, it
 * releases the next one that comes. Several sets without a waiter count as one. --- */

/* EINVAL: the memory is not aligned to 64 bytes. */
int antiphon_event_init(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread waits. */
int antiphon_event_destroy(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Never waits. */
void antiphon_event_set(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Takes back a set, unless it is on its way to a waiter. Never waits. */
void antiphon_event_reset(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Waits until the event is set, and resets it. */
void antiphon_event_wait(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Resets the event if it is set. EBUSY: it is not set, or other threads wait for it. Never
 * waits. */
ANTIPHON_MUST_USE
int antiphon_event_trywait(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_event_timedwait(antiphon_event_t *event, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Returns 1 if the event is set, else 0; may be out of date at once. */
int antiphon_event_is_set(const antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* --- latch: opens once and stays open. A latch that counts down from 1 is an event that is set
 * once and releases all. All bytes zero: from 1. --- */

/* A `count` of 0 is an open latch. EINVAL: `count` is more than ANTIPHON_LATCH_MAX. */
ANTIPHON_MUST_USE
int antiphon_latch_init(antiphon_latch_t *latch, uint32_t count) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread waits. */
int antiphon_latch_destroy(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* Counts down by `step`, at most to zero, where all waiters are released. Never waits. */
void antiphon_latch_count_down(antiphon_latch_t *latch, uint32_t step) ANTIPHON_NOEXCEPT;

/* Waits until the latch is open. */
void antiphon_latch_wait(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* Returns 0 if the latch is open, EBUSY if not. Never waits. */
ANTIPHON_MUST_USE
int antiphon_latch_trywait(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_latch_timedwait(antiphon_latch_t *latch, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Returns the remaining count; may be out of date at once. */
uint32_t antiphon_latch_left(const antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* --- event count: waits for a condition in the caller's data, such as a lock-free queue.
 *
 *	for (;;) {
 *		antiphon_event_count_prepare(&count, &key);
 *		if (condition)
 *			break;
 *		antiphon_event_count_wait(&key);
 *	}
 *	antiphon_event_count_cancel(&key);
 *
 * The thread that makes the condition true notifies afterwards; without waiters that costs a fence
 * and a load. Each prepare is ended by one wait, timedwait or cancel. Ending a key that has ended
 * already, or is all zero, does nothing. --- */

void antiphon_event_count_init(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread has prepared a wait, and was not notified. */
int antiphon_event_count_destroy(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* From now on notifications may be for the caller, which must check its condition next. `key` must
 * not hold a prepared wait. */
void antiphon_event_count_prepare(antiphon_event_count_t *count,
				  antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* Waits until notified; may rarely return spuriously. */
void antiphon_event_count_wait(antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: not notified in time. EINVAL: the wait was cancelled. The key has ended in all
 * cases. */
ANTIPHON_MUST_USE
int antiphon_event_count_timedwait(antiphon_event_key_t *key, int clock,
				   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Ends the wait because the condition was true. A notification that has come is passed to another
 * waiter. */
void antiphon_event_count_cancel(antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* Notifies up to `waiters` of the threads that have prepared, the first ones; for 1, the nearest of
 * the first few. Never waits. */
void antiphon_event_count_notify(antiphon_event_count_t *count, uint32_t waiters) ANTIPHON_NOEXCEPT;

/* Notifies all threads that have prepared. */
void antiphon_event_count_notify_all(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* --- broadcast: sleepers of one NUMA node are woken by one system call. If more than eight sleep
 * on several nodes, the sender wakes eight, and each of these wakes as many. Generations are
 * counted modulo 2^32: 2^32 sends between two looks look like none.
 *
 *	for (;;) {
 *		uint64_t seen = antiphon_broadcast_now(&work);
 *		if (there is some)
 *			break;
 *		antiphon_broadcast_wait(&work, seen);
 *	}
 *
 * Threads that need a mutex next want antiphon_cond_t. --- */

/* EINVAL: the memory is not aligned to 128 bytes. */
int antiphon_broadcast_init(antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread sleeps that was not signalled. */
int antiphon_broadcast_destroy(antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Returns the present generation. Call this before you check your condition: any later send ends a
 * wait with this generation. */
uint64_t antiphon_broadcast_now(const antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Ends all waits with the present generation. */
void antiphon_broadcast_send(antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Waits until there was a send after the generation `seen`. */
void antiphon_broadcast_wait(antiphon_broadcast_t *broadcast, uint64_t seen) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_broadcast_timedwait(antiphon_broadcast_t *broadcast, uint64_t seen, int clock,
				 const struct timespec *until) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_event_t, 192, 64);
ANTIPHON_ASSERT_LAYOUT(antiphon_latch_t, 24, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_event_count_t, 16, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_event_key_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_broadcast_t, 1152, 128);

#endif
