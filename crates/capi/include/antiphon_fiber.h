/* antiphon_fiber.h: fibers, which wait in the middle of a call while their thread runs others.
 *
 *	antiphon_fiber_pool_create(&pool, 0, NULL, 0);
 *	antiphon_pool_spawn(pool, &group, serve, connection);
 *
 * The tasks of such a pool are fibers, each on a stack of its own. A fiber that waits is suspended,
 * and its thread runs others. That holds for all waits of this library except on memory that
 * processes share: mutexes, readers-writer locks, condition variables, barriers, semaphores,
 * events, latches, event counts, broadcasts, task groups, and the objects of this header,
 * antiphon_stage.h and antiphon_net.h. Threads and fibers wait in the same queues, and each wakes
 * the other. All objects except the pools may also be used by threads, which sleep.
 *
 * Rules for code in fibers, which the compiler cannot check:
 *
 * - A fiber must not wait while it initialises a thread-local (in the initialiser of a C++
 *   thread_local or of a static in a function), nor in a scope that sets a thread-local and
 *   restores its former value at the end: other fibers run on the same thread meanwhile, and may do
 *   the same.
 * - A fiber that has begun stays on its thread. errno belongs to the thread: after a wait it has
 *   the value that others have left.
 * - Other ways to wait block the thread with all its fibers: files, sockets other than those of
 *   antiphon_net.h, pthread locks. antiphon_pool_blocking helps tasks that have not begun. Two
 *   fibers of a thread that lock a pthread mutex, and wait while they own it, block the thread for
 *   ever.
 * - A fiber that computes for long should call antiphon_fiber_checkpoint regularly.
 * - The stack does not grow: a fiber that needs more ends the process by SIGSEGV. Put large arrays
 *   on the heap.
 *
 * The rules of antiphon_pool.h hold: objects are made and destroyed by functions, and without
 * memory the program ends. An object that is destroyed must not be in use, and no thread may wait
 * for it. What was done before a wait was ended happens before the return of the wait. */

#ifndef ANTIPHON_FIBER_H
#define ANTIPHON_FIBER_H

#include "antiphon_event.h"
#include "antiphon_pool.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A bounded queue of items between senders and receivers. */
typedef struct antiphon_channel antiphon_channel_t;

/* The duty to deliver a value, and the handle to wait for it. */
typedef struct antiphon_promise antiphon_promise_t;
typedef struct antiphon_awaited antiphon_awaited_t;

/* Tells whether work should end. */
typedef struct antiphon_token antiphon_token_t;

/* --- fibers --- */

/* Makes a pool as antiphon_pool_create does, whose tasks are fibers with stacks of `stack_bytes`;
 * 0: 64 KiB. EINVAL: also if stacks of that size are impossible. EAGAIN: also if there is no memory
 * for one, or fibers of another runtime wait by this library. */
ANTIPHON_MUST_USE
int antiphon_fiber_pool_create(antiphon_pool_t **pool, size_t threads, const char *policy,
			       size_t stack_bytes) ANTIPHON_NOEXCEPT;

/* Returns 1 if the caller is a fiber, else 0. */
int antiphon_fiber_is_fiber(void) ANTIPHON_NOEXCEPT;

/* Lets other fibers of this thread run, and after every fourth turn a task that has not begun. If
 * the caller is not a fiber, lets other threads run. */
void antiphon_fiber_yield(void) ANTIPHON_NOEXCEPT;

/* Lets other fibers of this thread run, and begins tasks only rarely. Costs less than
 * antiphon_fiber_yield. */
void antiphon_fiber_yield_soft(void) ANTIPHON_NOEXCEPT;

/* Yields if the fiber has run for 100 microseconds or more; otherwise costs a nanosecond or two. If
 * the caller is not a fiber, does nothing. */
void antiphon_fiber_checkpoint(void) ANTIPHON_NOEXCEPT;

/* Sleeps for at least `ns` nanoseconds. */
void antiphon_fiber_sleep(uint64_t ns) ANTIPHON_NOEXCEPT;

/* Sleeps until `until`. EINVAL. */
ANTIPHON_MUST_USE
int antiphon_fiber_sleep_until(int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- channels: each item is received once, in the order in which items were sent. Items are copied
 * in and out as bytes; an item of more than 32 bytes is an allocation. --- */

/* The largest room of a channel in items, and the largest item in bytes. */
#define ANTIPHON_CHANNEL_MAX 1048576u
#define ANTIPHON_ITEM_MAX 1048576u

/* Makes a channel for items of `item_bytes`, 0 to ANTIPHON_ITEM_MAX, with room for `room` items, 1
 * to ANTIPHON_CHANNEL_MAX, rounded up to a power of two. EINVAL: other numbers. */
ANTIPHON_MUST_USE
int antiphon_channel_create(antiphon_channel_t **channel, size_t item_bytes,
			    size_t room) ANTIPHON_NOEXCEPT;

/* Items that were not received are lost. Never waits. */
void antiphon_channel_destroy(antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;

/* Sends the item that `item` points to; waits for room. EPIPE: the channel is closed. */
ANTIPHON_MUST_USE
int antiphon_channel_send(antiphon_channel_t *channel, const void *item) ANTIPHON_NOEXCEPT;

/* EAGAIN: there is no room. EPIPE. Never waits. */
ANTIPHON_MUST_USE
int antiphon_channel_trysend(antiphon_channel_t *channel, const void *item) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_channel_timedsend(antiphon_channel_t *channel, const void *item, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Receives an item to where `item` points; waits for one. EPIPE: the channel is closed, and all
 * items were received. */
ANTIPHON_MUST_USE
int antiphon_channel_recv(antiphon_channel_t *channel, void *item) ANTIPHON_NOEXCEPT;

/* EAGAIN: there is no item. EPIPE. Never waits. */
ANTIPHON_MUST_USE
int antiphon_channel_tryrecv(antiphon_channel_t *channel, void *item) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_channel_timedrecv(antiphon_channel_t *channel, void *item, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Closes the channel: later sends fail, and items that were sent are received. Ends all waits.
 * Never waits. */
void antiphon_channel_close(antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;

/* Return the number of items in the channel, which may be out of date at once; and the number of
 * items for which there is room. */
size_t antiphon_channel_len(const antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;
size_t antiphon_channel_room(const antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;

/* --- promises: a pointer that one thread delivers and another waits for --- */

void antiphon_promise_create(antiphon_promise_t **promise,
			     antiphon_awaited_t **awaited) ANTIPHON_NOEXCEPT;

/* Delivers the value, and frees the promise. Never waits. */
void antiphon_promise_fulfil(antiphon_promise_t *promise, void *value) ANTIPHON_NOEXCEPT;

/* Announces that there will be no value, and frees the promise. Never waits. */
void antiphon_promise_break(antiphon_promise_t *promise) ANTIPHON_NOEXCEPT;

/* Waits for the value. EPIPE: the promise was broken. Later calls return the same. A worker of a
 * pool without fibers runs other tasks of its pool while it waits. */
ANTIPHON_MUST_USE
int antiphon_awaited_wait(antiphon_awaited_t *awaited, void **value) ANTIPHON_NOEXCEPT;

/* EBUSY: the value is not there yet. EPIPE. Never waits. */
ANTIPHON_MUST_USE
int antiphon_awaited_trywait(antiphon_awaited_t *awaited, void **value) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_awaited_timedwait(antiphon_awaited_t *awaited, void **value, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* A value that was not taken is lost; the program still owns the memory that it points to. */
void antiphon_awaited_destroy(antiphon_awaited_t *awaited) ANTIPHON_NOEXCEPT;

/* --- tokens: tell work to end; the work checks them and ends by itself. A token is cancelled once
 * and for all, by antiphon_token_cancel, at its deadline, or with its parent. --- */

/* `parent` is NULL or a token, which may be destroyed before this one. */
void antiphon_token_create(antiphon_token_t **token,
			   const antiphon_token_t *parent) ANTIPHON_NOEXCEPT;

/* Makes a token with a deadline, which is not after its parent's. EINVAL. */
ANTIPHON_MUST_USE
int antiphon_token_create_until(antiphon_token_t **token, const antiphon_token_t *parent,
				int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Destroys the token without cancelling it. */
void antiphon_token_destroy(antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* Cancels the token and all its descendants. Takes time in proportion to their number; never
 * waits. */
void antiphon_token_cancel(antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* Returns 1 if the token is cancelled, else 0. */
int antiphon_token_is_cancelled(const antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* Waits until the token is cancelled. */
void antiphon_token_wait(const antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: the token is not cancelled. EINVAL. */
ANTIPHON_MUST_USE
int antiphon_token_timedwait(const antiphon_token_t *token, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- select: waits for the first of several cases, and takes only that one.
 *
 *	antiphon_case_t cases[] = {
 *		ANTIPHON_CASE_RECV(requests, &request),
 *		ANTIPHON_CASE_TOKEN(stop),
 *	};
 *	antiphon_select(cases, 2, &chosen);
 *
 * Of several ready cases one is chosen at random, each as likely as the others. The others are left
 * as they are: an item that was not sent stays with the caller, an event that was not taken stays
 * set. An event may be handed to a waiting select that takes another case; it is then set again. A
 * closed channel is always ready: give its case the kind ANTIPHON_CASE_KIND_NEVER. Up to eight
 * cases need no allocation. --- */

enum antiphon_case_kind {
	ANTIPHON_CASE_KIND_NEVER = 0,
	ANTIPHON_CASE_KIND_RECV = 1,
	ANTIPHON_CASE_KIND_SEND = 2,
	ANTIPHON_CASE_KIND_EVENT = 3,
	ANTIPHON_CASE_KIND_LATCH = 4,
	ANTIPHON_CASE_KIND_TOKEN = 5,
	ANTIPHON_CASE_KIND_AWAITED = 6
};

/* A case of a select. */
typedef struct antiphon_case {
	/* An enum antiphon_case_kind. */
	int kind;
	/* The result of the chosen case: 0, or EPIPE, as of recv, send and wait. */
	int code;
	void *object;
	/* Where an item is received to or sent from; where a value is stored. */
	void *item;
} antiphon_case_t;

/* clang-format off */
#define ANTIPHON_CASE_NEVER                   { ANTIPHON_CASE_KIND_NEVER, 0, NULL, NULL }
#define ANTIPHON_CASE_RECV(channel, item)     { ANTIPHON_CASE_KIND_RECV, 0, (channel), (item) }
#define ANTIPHON_CASE_SEND(channel, item)     { ANTIPHON_CASE_KIND_SEND, 0, (channel), (item) }
#define ANTIPHON_CASE_EVENT(event)            { ANTIPHON_CASE_KIND_EVENT, 0, (event), NULL }
#define ANTIPHON_CASE_LATCH(latch)            { ANTIPHON_CASE_KIND_LATCH, 0, (latch), NULL }
#define ANTIPHON_CASE_TOKEN(token)            { ANTIPHON_CASE_KIND_TOKEN, 0, (token), NULL }
#define ANTIPHON_CASE_AWAITED(awaited, value) { ANTIPHON_CASE_KIND_AWAITED, 0, (awaited), (value) }
/* clang-format on */

/* Waits until a case is ready, and stores its number in `chosen`. An awaited may be in one case
 * only.
 * EINVAL: there are no cases, or a kind is unknown. */
ANTIPHON_MUST_USE
int antiphon_select(antiphon_case_t *cases, size_t count, size_t *chosen) ANTIPHON_NOEXCEPT;

/* EAGAIN: no case is ready. EINVAL. Never waits. */
ANTIPHON_MUST_USE
int antiphon_tryselect(antiphon_case_t *cases, size_t count, size_t *chosen) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_timedselect(antiphon_case_t *cases, size_t count, size_t *chosen, int clock,
			 const struct timespec *until) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_case_t, 24, 8);

#endif
