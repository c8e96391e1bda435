/* antiphon_stage.h: pipelines of stages with bounded queues, on pools of fibers.
 *
 *	antiphon_stage_options_t options = { "square", sizeof(uint64_t), 0, 4, 0, 0 };
 *	antiphon_stage_create(&stage, &inlet, pool, &options, square, NULL, next);
 *	antiphon_inlet_send(inlet, &number);
 *	antiphon_inlet_destroy(inlet);
 *	antiphon_stage_join(stage, NULL);
 *
 * A stage has no threads. While it has items it has servers, which are tasks of its pool; their
 * number reaches its width when half of its room is taken. A sender to a full queue waits: a fiber
 * is suspended, a thread sleeps. So the slowest stage sets the pace of all before it. A server runs
 * for 100 microseconds times the weight; then other tasks of the pool run.
 *
 * A stage is over when all its inlets are destroyed and all items are served. It keeps the inlets
 * of the next stages in its context, and destroys them in `end`: so a pipeline ends stage by stage
 * from its beginning.
 *
 * Fibers, pools and memory are as antiphon_fiber.h says. */

#ifndef ANTIPHON_STAGE_H
#define ANTIPHON_STAGE_H

#include "antiphon_fiber.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A stage: its counts, and the wait for its end. */
typedef struct antiphon_stage antiphon_stage_t;

/* Sends items to a stage; while it exists, the stage does not end. */
typedef struct antiphon_inlet antiphon_inlet_t;

/* Options of a stage. All but item_bytes may be zero: the default in brackets is used. */
typedef struct antiphon_stage_options {
	/* The name in reports; copied. */
	const char *name;
	/* Size of an item, at most ANTIPHON_ITEM_MAX. */
	size_t item_bytes;
	/* Capacity of the queue in items, rounded up to a power of two; at most
	 * ANTIPHON_CHANNEL_MAX (128). */
	size_t room;
	/* The number of items that are served at a time; with 1, in the order in which they were
	 * sent (the threads of the pool). */
	size_t width;
	/* The number of turns for each turn of other stages (1). */
	uint32_t weight;
	/* Must be 0. */
	uint32_t kept;
} antiphon_stage_options_t;

/* Counts of a stage. */
typedef struct antiphon_stage_stats {
	uint64_t served;
	/* How often a sender had to wait: this stage, or a later one, is the slow one. */
	uint64_t full;
	uint64_t waiting;
	uint64_t room;
	uint64_t servers;
	uint64_t kept;
} antiphon_stage_stats_t;

/* Makes a stage: the pool runs serve(context, item) for each item, up to `width` at a time, each in
 * a fiber. The item is a copy, aligned to 8 bytes, or 16 if it has more than 32, and is gone when
 * `serve` returns. end(context) is called once, as a task of the pool, when the stage is over,
 * unless it is NULL. antiphon_pool_destroy waits until the stage is over. EINVAL: the pool has no
 * fibers, a number is too large, or `kept` is not 0. */
ANTIPHON_MUST_USE
int antiphon_stage_create(antiphon_stage_t **stage, antiphon_inlet_t **inlet, antiphon_pool_t *pool,
			  const antiphon_stage_options_t *options,
			  void (*serve)(void *context, void *item), void (*end)(void *context),
			  void *context) ANTIPHON_NOEXCEPT;

/* Waits until the stage is over and `end` has returned, and frees it. Stores the counts in `stats`
 * unless it is NULL. */
void antiphon_stage_join(antiphon_stage_t *stage, antiphon_stage_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Frees the handle; the stage goes on. */
void antiphon_stage_detach(antiphon_stage_t *stage) ANTIPHON_NOEXCEPT;

/* Stores the counts so far; may be out of date at once. */
void antiphon_stage_stats(const antiphon_stage_t *stage,
			  antiphon_stage_stats_t *stats) ANTIPHON_NOEXCEPT;

/* Makes another inlet of the same stage. */
antiphon_inlet_t *antiphon_inlet_clone(const antiphon_inlet_t *inlet) ANTIPHON_NOEXCEPT;

/* Destroys an inlet. After the last one the stage ends when all items are served. Never waits. */
void antiphon_inlet_destroy(antiphon_inlet_t *inlet) ANTIPHON_NOEXCEPT;

/* Sends the item that `item` points to; waits for room. A stage must not send to itself by this,
 * directly or through other stages: if all servers wait for room in their own queue, none makes
 * room. */
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
