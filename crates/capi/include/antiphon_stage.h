/* antiphon_stage.h: a program as steps that its items go through, each with a line of its own that
 * has a bound, on pools of fibers.
 *
 *	antiphon_stage_options_t options = { "square", sizeof(uint64_t), 0, 4, 0, 0 };
 *	antiphon_stage_create(&stage, &inlet, pool, &options, square, NULL, next);
 *	antiphon_inlet_send(inlet, &number);
 *	antiphon_inlet_destroy(inlet);
 *	antiphon_stage_join(stage, NULL);
 *
 * A stage has no threads: while it has items it has servers, which are tasks of its pool, up to its
 * width when half of its room is taken. Who sends to a full line waits: a fiber is suspended, a
 * thread sleeps. So the slowest stage sets the pace of all before it. A server has turns of 100
 * microseconds times the weight; then others of the pool have theirs.
 *
 * A stage is over when nobody has an inlet of it any more and all is served. What it sends to, it
 * has inlets of in its context, and destroys in `end`: so a pipeline ends from its beginning on.
 *
 * Fibers, pools and memory are as antiphon_fiber.h says. */

#ifndef ANTIPHON_STAGE_H
#define ANTIPHON_STAGE_H

#include "antiphon_fiber.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What is known of a stage, and how to wait for its end. */
typedef struct antiphon_stage antiphon_stage_t;

/* Sends items to a stage, and keeps it from its end. */
typedef struct antiphon_inlet antiphon_inlet_t;

/* How a stage is to be. Zero but for the bytes: what is in brackets. */
typedef struct antiphon_stage_options {
	/* For who looks at it; copied. */
	const char *name;
	/* Of an item, ANTIPHON_ITEM_MAX at most. */
	size_t item_bytes;
	/* For so many items that wait, rounded up to a power of two; ANTIPHON_CHANNEL_MAX at most
	 * (128). */
	size_t room;
	/* So many are served at a time; with 1, in the order in which they were sent (the threads of
	 * the pool). */
	size_t width;
	/* So many turns where others have one (1). */
	uint32_t weight;
	/* 0. */
	uint32_t kept;
} antiphon_stage_options_t;

/* What a stage has done, and has before it. */
typedef struct antiphon_stage_stats {
	uint64_t served;
	/* How often who sent had to wait: this stage, or one behind it, is the slow one. */
	uint64_t full;
	uint64_t waiting;
	uint64_t room;
	uint64_t servers;
	uint64_t kept;
} antiphon_stage_stats_t;

/* Has the pool run `serve(context, item)` for each item: several at a time, as wide as the stage
 * is, each in a fiber. The item is a copy, aligned to 8 bytes, or 16 if it has more than 32, and is
 * gone when `serve` is back. `end(context)` is called once, as a task of the pool, when the stage
 * is over; NULL: nothing is. The pool is destroyed after the stage is over: antiphon_pool_destroy
 * waits for that. EINVAL: the pool has no fibers, a number is too large, or `kept` is not 0. */
ANTIPHON_MUST_USE
int antiphon_stage_create(antiphon_stage_t **stage, antiphon_inlet_t **inlet, antiphon_pool_t *pool,
			  const antiphon_stage_options_t *options,
			  void (*serve)(void *context, void *item), void (*end)(void *context),
			  void *context) ANTIPHON_NOEXCEPT;

/* Waits until the stage is over, `end` is back, too, and lets go of it. `stats` is NULL, or where
 * they go. */
void antiphon_stage_join(antiphon_stage_t *stage, antiphon_stage_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Lets go of the stage, which goes on. */
void antiphon_stage_detach(antiphon_stage_t *stage) ANTIPHON_NOEXCEPT;

/* What it has done so far; may be otherwise at once. */
void antiphon_stage_stats(const antiphon_stage_t *stage,
			  antiphon_stage_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Another inlet of the same stage. */
antiphon_inlet_t *antiphon_inlet_clone(const antiphon_inlet_t *inlet) ANTIPHON_NOEXCEPT;

/* Sends nothing more by this. The last one ends the stage, when all is served. Never waits. */
void antiphon_inlet_destroy(antiphon_inlet_t *inlet) ANTIPHON_NOEXCEPT;

/* Sends the item that `item` points to; waits for room. A stage does not send to itself by this,
 * nor by way of others: when all who serve wait for room in their own line, nobody makes some. */
void antiphon_inlet_send(antiphon_inlet_t *inlet, const void *item) ANTIPHON_NOEXCEPT;

/* EAGAIN: there is no room. Never waits. */
ANTIPHON_MUST_USE
int antiphon_inlet_trysend(antiphon_inlet_t *inlet, const void *item) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_inlet_timedsend(antiphon_inlet_t *inlet, const void *item, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_stage_options_t, 40, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_stage_stats_t, 48, 8);

#endif
