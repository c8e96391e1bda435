/* antiphon_pshared_event.h: to tell threads of any process that something has happened, by memory
 * that they share.
 *
 *	struct common { antiphon_pshared_event_t ready; … } *common = mmap(… MAP_SHARED …);
 *
 *	antiphon_pshared_event_set(&common->ready);	one process
 *	antiphon_pshared_event_wait(&common->ready);	another
 *
 * | type                         | tells                             | bytes, alignment |
 * |------------------------------|-----------------------------------|------------------|
 * | antiphon_pshared_event_t     | one thread, and resets itself     | 4, 4             |
 * | antiphon_pshared_latch_t     | all, once so many things are done | 8, 4             |
 * | antiphon_pshared_broadcast_t | all that wait, or of a condition  | 4, 4             |
 * |                              | in other words, as often as you   |                  |
 * |                              | like                              |                  |
 *
 * As antiphon.h says of all types and functions; the memory may be mapped at any address. None has
 * a lock: what never waits may be called in signal handlers, those that interrupt a call on the
 * same object too, and a fork leaves nothing locked. So these serve in one process for what
 * antiphon_event.h has not, and are smaller; but who sends wakes all sleepers itself, and they wait
 * in the kernel in no order.
 *
 * What was done before a set, count down or send happens before what is done by who was told. Who
 * was told may use the memory otherwise once no other waits: nothing is touched after another could
 * have been. A process may unmap it when its own threads have returned.
 *
 * A process may be killed anywhere. An event that it had taken is lost, and what it was to count
 * down is not counted; waits with a time find out. */

#ifndef ANTIPHON_PSHARED_EVENT_H
#define ANTIPHON_PSHARED_EVENT_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* An event that resets itself. */
typedef struct antiphon_pshared_event {
	uint32_t antiphon_private[1];
} antiphon_pshared_event_t;

/* A latch. */
typedef struct antiphon_pshared_latch {
	uint32_t antiphon_private[2];
} antiphon_pshared_latch_t;

/* A broadcast. */
typedef struct antiphon_pshared_broadcast {
	uint32_t antiphon_private[1];
} antiphon_pshared_broadcast_t;

/* clang-format off */
#define ANTIPHON_PSHARED_EVENT_INIT        { { 0 } }
#define ANTIPHON_PSHARED_BROADCAST_INIT    { { 0 } }
/* Counts down from so many, ANTIPHON_LATCH_MAX at most. */
#define ANTIPHON_PSHARED_LATCH_INIT(count) { { 0, (count) - 1u } }
/* clang-format on */

/* --- event. A set lets one waiter go, or the next one that comes; comers take it ahead of those
 * that sleep. Several that nobody has waited for are one. --- */

void antiphon_pshared_event_init(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Never waits. */
void antiphon_pshared_event_set(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Waits until the event is set, and resets it. */
void antiphon_pshared_event_wait(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Resets the event if it is set. EBUSY: it is not. Never waits. */
ANTIPHON_MUST_USE
int antiphon_pshared_event_trywait(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_pshared_event_timedwait(antiphon_pshared_event_t *event, int clock,
				     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- latch: opens once and for all. All zero: counts down from 1. --- */

/* EINVAL: more than ANTIPHON_LATCH_MAX. 0: it is open. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_init(antiphon_pshared_latch_t *latch, uint32_t count) ANTIPHON_NOEXCEPT;

/* By so much, or by what is left if that is less; at zero, all that wait go on. Never waits. */
void antiphon_pshared_latch_count_down(antiphon_pshared_latch_t *latch,
				       uint32_t step) ANTIPHON_NOEXCEPT;

/* Waits until the latch is open. */
void antiphon_pshared_latch_wait(antiphon_pshared_latch_t *latch) ANTIPHON_NOEXCEPT;

/* 0 if the latch is open. EBUSY: it is not. Never waits. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_trywait(antiphon_pshared_latch_t *latch) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_timedwait(antiphon_pshared_latch_t *latch, int clock,
				     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- broadcast: also in place of an event count.
 *
 *	for (;;) {
 *		uint32_t seen = antiphon_pshared_broadcast_now(&common->work);
 *		if (there is some)
 *			break;
 *		antiphon_pshared_broadcast_wait(&common->work, seen);
 *	}
 * --- */

void antiphon_pshared_broadcast_init(antiphon_pshared_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* The present generation, to be asked for before the look at what one waits for: what is sent from
 * then on ends a wait with it. They are counted modulo 2^31: so many sends in one wait are none. */
uint32_t antiphon_pshared_broadcast_now(const antiphon_pshared_broadcast_t *broadcast)
	ANTIPHON_NOEXCEPT;

/* Ends the waits of all that wait with the present generation. Never waits. */
void antiphon_pshared_broadcast_send(antiphon_pshared_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Waits until something was sent behind that generation. */
void antiphon_pshared_broadcast_wait(antiphon_pshared_broadcast_t *broadcast,
				     uint32_t seen) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_pshared_broadcast_timedwait(antiphon_pshared_broadcast_t *broadcast, uint32_t seen,
					 int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_pshared_event_t, 4, 4);
ANTIPHON_ASSERT_LAYOUT(antiphon_pshared_latch_t, 8, 4);
ANTIPHON_ASSERT_LAYOUT(antiphon_pshared_broadcast_t, 4, 4);

#endif
