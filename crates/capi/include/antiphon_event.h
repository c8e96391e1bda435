/* antiphon_event.h: to tell other threads that something has happened.
 *
 *	static antiphon_event_t ready = ANTIPHON_EVENT_INIT;
 *
 *	antiphon_event_set(&ready);		one thread
 *	antiphon_event_wait(&ready);		another
 *
 * | type                   | tells                                | bytes, alignment |
 * |------------------------|--------------------------------------|------------------|
 * | antiphon_event_t       | one thread, and resets itself        | 192, 64          |
 * | antiphon_latch_t       | all, once so many things are done    | 24, 8            |
 * | antiphon_event_count_t | some, of a condition in other words  | 16, 8            |
 * | antiphon_broadcast_t   | all that wait, as often as you like  | 1152, 128        |
 *
 * As antiphon.h says of all types and functions, but:
 *
 * - They may not be called in signal handlers: sleepers are listed under a lock, for which the
 *   handler waits without end if it has interrupted its owner. A handler may set, count down and
 *   send what antiphon_pshared_event.h has, for the threads of one process too.
 * - A fork while another thread is in a call on an object may leave that locked in the child: its
 *   next call there may wait without end. The child inits the object again, or forks when nobody is
 *   in a call.
 * - Memory of malloc is not aligned enough for events and broadcasts; aligned_alloc's is.
 *
 * What was done before a set, count down, notification or send happens before what is done by who
 * was told. Who waits spins for what a sleep costs, if there are CPUs enough, and sleeps then;
 * who tells makes a system call only if somebody sleeps.
 *
 * Memory may be used otherwise once all that have waited are back, though the call that told them
 * is not. */

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

/* A wait that was prepared. */
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
/* Counts down from so many, ANTIPHON_LATCH_MAX at most. */
#define ANTIPHON_LATCH_INIT(count)  { { 0, (count) - 1u }, { 0, 0 } }
/* clang-format on */

/* --- event. A set lets one waiter go, the nearest of the first few, or, if nobody waits, the next
 * one that comes. Several that nobody has waited for are one. --- */

/* EINVAL: the memory is not aligned to 64 bytes. */
int antiphon_event_init(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody waits. */
int antiphon_event_destroy(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Never waits. */
void antiphon_event_set(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Takes back what was set, unless it is on its way to a waiter. Never waits. */
void antiphon_event_reset(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Waits until the event is set, and resets it. */
void antiphon_event_wait(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* Resets the event if it is set. EBUSY: it is not, or others wait for it. Never waits. */
ANTIPHON_MUST_USE
int antiphon_event_trywait(antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_event_timedwait(antiphon_event_t *event, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* 1 if the event is set, else 0; it may be otherwise at once. */
int antiphon_event_is_set(const antiphon_event_t *event) ANTIPHON_NOEXCEPT;

/* --- latch: opens once and for all. One that counts down from 1 is an event that is set once, and
 * lets all go. All zero: from 1. --- */

/* EINVAL: more than ANTIPHON_LATCH_MAX. 0: it is open. */
ANTIPHON_MUST_USE
int antiphon_latch_init(antiphon_latch_t *latch, uint32_t count) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody waits. */
int antiphon_latch_destroy(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* By so much, or by what is left if that is less; at zero, all that wait go on. Never waits. */
void antiphon_latch_count_down(antiphon_latch_t *latch, uint32_t step) ANTIPHON_NOEXCEPT;

/* Waits until the latch is open. */
void antiphon_latch_wait(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* 0 if the latch is open. EBUSY: it is not. Never waits. */
ANTIPHON_MUST_USE
int antiphon_latch_trywait(antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_latch_timedwait(antiphon_latch_t *latch, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* How much is to be counted down yet; it may be otherwise at once. */
uint32_t antiphon_latch_left(const antiphon_latch_t *latch) ANTIPHON_NOEXCEPT;

/* --- event count: to wait for a condition that stands elsewhere, as in a queue without locks.
 *
 *	for (;;) {
 *		antiphon_event_count_prepare(&count, &key);
 *		if (condition)
 *			break;
 *		antiphon_event_count_wait(&key);
 *	}
 *	antiphon_event_count_cancel(&key);
 *
 * Who makes the condition true notifies after that; where nobody waits, this is a fence and a load.
 * Each preparation has one end: a wait, a timedwait, or a cancel. The end of a key that has ended,
 * or is all zero, does nothing. --- */

void antiphon_event_count_init(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody has prepared, and was not notified. */
int antiphon_event_count_destroy(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* From now on notifications may be for the caller, who looks at its condition next. `key` is
 * memory that has no wait prepared. */
void antiphon_event_count_prepare(antiphon_event_count_t *count,
				  antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* Waits until notified, or (seldom) for no reason. */
void antiphon_event_count_wait(antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: not notified in time. EINVAL: cancelled. The wait has ended whatever is returned. */
ANTIPHON_MUST_USE
int antiphon_event_count_timedwait(antiphon_event_key_t *key, int clock,
				   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Ends the wait, as the condition was true. A notification that has come goes to another. */
void antiphon_event_count_cancel(antiphon_event_key_t *key) ANTIPHON_NOEXCEPT;

/* Notifies the first so many that have prepared, or all if they are fewer; of one, the nearest of
 * the first few. Never waits. */
void antiphon_event_count_notify(antiphon_event_count_t *count, uint32_t waiters) ANTIPHON_NOEXCEPT;

/* Notifies all that have prepared. */
void antiphon_event_count_notify_all(antiphon_event_count_t *count) ANTIPHON_NOEXCEPT;

/* --- broadcast: sleepers of one NUMA node are woken by one system call; where more than eight are
 * on several, who sends wakes eight, and each of these as many. Generations are counted modulo
 * 2^32: so many sends between two looks are none.
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

/* EBUSY: somebody sleeps who was not told. */
int antiphon_broadcast_destroy(antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* The present generation, to be asked for before the look at what one waits for: what is sent from
 * then on ends a wait with it. */
uint64_t antiphon_broadcast_now(const antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Ends the waits of all that wait with the present generation. */
void antiphon_broadcast_send(antiphon_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Waits until something was sent behind that generation. */
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
