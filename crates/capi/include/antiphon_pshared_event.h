/* antiphon_pshared_event.h: events, latches and broadcasts in memory that processes share.
 *
 *	struct common { antiphon_pshared_event_t ready; … } *common = mmap(… MAP_SHARED …);
 *
 *	antiphon_pshared_event_set(&common->ready);	one process
 *	antiphon_pshared_event_wait(&common->ready);	another
 *
 * | type                         | signals                           | bytes, alignment |
 * |------------------------------|-----------------------------------|------------------|
 * | antiphon_pshared_event_t     | one thread, and resets itself     | 4, 4             |
 * | antiphon_pshared_latch_t     | all, once the count is zero       | 8, 4             |
 * | antiphon_pshared_broadcast_t | all that wait, any number of      | 4, 4             |
 * |                              | times; also for a condition in    |                  |
 * |                              | your data                         |                  |
 *
 * The rules of antiphon.h hold; the memory may be mapped at any address. None of these types has a
 * lock: functions that never wait may be called in signal handlers, also in one that interrupts a
 * call on the same object, and a fork leaves nothing locked. So they also serve within one process
 * in the cases where the types of antiphon_event.h cannot be used, and are smaller. But the sender
 * wakes all sleepers itself, and they wait in the kernel in no particular order.
 *
 * What was done before a set, count down or send happens before the return of the wait that it
 * ends. A thread whose wait has returned may reuse the memory once no other thread waits: the
 * object is not touched after it could have been released. A process may unmap it when its own
 * threads have returned.
 *
 * A process may be killed at any point. An event that it had taken is lost, and its count down is
 * not counted; use waits with deadlines to find out. */

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
/* Counts down from `count`, at most ANTIPHON_LATCH_MAX. */
#define ANTIPHON_PSHARED_LATCH_INIT(count) { { 0, (count) - 1u } }
/* clang-format on */

/* --- event. A set releases one waiter, or the next one that comes; arriving waiters take it ahead
 * of sleeping ones. Several sets without a waiter count as one. --- */

void antiphon_pshared_event_init(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Never waits. */
void antiphon_pshared_event_set(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Waits until the event is set, and resets it. */
void antiphon_pshared_event_wait(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* Resets the event if it is set. EBUSY: it is not set. Never waits. */
ANTIPHON_MUST_USE
int antiphon_pshared_event_trywait(antiphon_pshared_event_t *event) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_pshared_event_timedwait(antiphon_pshared_event_t *event, int clock,
				     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- latch: opens once and stays open. All bytes zero: counts down from 1. --- */

/* A `count` of 0 is an open latch. EINVAL: `count` is more than ANTIPHON_LATCH_MAX. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_init(antiphon_pshared_latch_t *latch, uint32_t count) ANTIPHON_NOEXCEPT;

/* Counts down by `step`, at most to zero, where all waiters are released. Never waits. */
void antiphon_pshared_latch_count_down(antiphon_pshared_latch_t *latch,
				       uint32_t step) ANTIPHON_NOEXCEPT;

/* Waits until the latch is open. */
void antiphon_pshared_latch_wait(antiphon_pshared_latch_t *latch) ANTIPHON_NOEXCEPT;

/* Returns 0 if the latch is open, EBUSY if not. Never waits. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_trywait(antiphon_pshared_latch_t *latch) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_pshared_latch_timedwait(antiphon_pshared_latch_t *latch, int clock,
				     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- broadcast: also serves as an event count.
 *
 *	for (;;) {
 *		uint32_t seen = antiphon_pshared_broadcast_now(&common->work);
 *		if (there is some)
 *			break;
 *		antiphon_pshared_broadcast_wait(&common->work, seen);
 *	}
 * --- */

void antiphon_pshared_broadcast_init(antiphon_pshared_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Returns the present generation. Call this before you check your condition: any later send ends a
 * wait with this generation. Generations are counted modulo 2^31: 2^31 sends during one wait look
 * like none. */
uint32_t antiphon_pshared_broadcast_now(const antiphon_pshared_broadcast_t *broadcast)
	ANTIPHON_NOEXCEPT;

/* Ends all waits with the present generation. Never waits. */
void antiphon_pshared_broadcast_send(antiphon_pshared_broadcast_t *broadcast) ANTIPHON_NOEXCEPT;

/* Waits until there was a send after the generation `seen`. */
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
