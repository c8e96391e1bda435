/* antiphon_fiber.h: code that reads straight down, and where it waits, its thread runs other code.
 *
 *	antiphon_fiber_pool_create(&pool, 0, NULL, 0);
 *	antiphon_pool_spawn(pool, &group, serve, connection);
 *
 * The tasks of such a pool are fibers, each on a stack of its own. One that waits is suspended, and
 * its thread runs others. That is so of all waits of this library but those on memory that
 * processes share: mutexes, readers-writer locks, condition variables, barriers, semaphores,
 * events, latches, event counts, broadcasts, task groups, and what is here, in antiphon_stage.h and
 * in antiphon_net.h. Threads and fibers wait in the same queues, and each wakes the other; all but
 * the pools is for threads, too, which sleep.
 *
 * Who uses fibers knows, and the compiler does not:
 *
 * - No fiber may wait while it makes a thread-local (in the initialiser of a C++ thread_local or of
 *   a static in a function), nor within what sets one for a while and then puts back what was
 *   there. Others run on the same thread meanwhile, and do the same.
 * - One that has begun stays on its thread. errno is the thread's: after a wait it is what others
 *   have left.
 * - What else waits blocks the thread, with all its fibers: files, sockets that are not of
 *   antiphon_net.h, pthread locks. antiphon_pool_blocking helps those that have not begun. Two
 *   fibers of a thread that lock a pthread mutex, and wait while they have it, block it for ever.
 * - One that computes for long calls antiphon_fiber_checkpoint now and then.
 * - The stack does not grow: what needs more ends the process by SIGSEGV. Large arrays are for the
 *   heap.
 *
 * As antiphon_pool.h says of all functions: objects are made and destroyed by the functions here,
 * and without memory the program ends. What is destroyed, nobody uses any more, nor waits for. Who
 * has waited sees what was done before that which it waited for. */

#ifndef ANTIPHON_FIBER_H
#define ANTIPHON_FIBER_H

#include "antiphon_event.h"
#include "antiphon_pool.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Items, from those who send to those who receive, and no more at a time than there is room for. */
typedef struct antiphon_channel antiphon_channel_t;

/* The duty to come up with a value, and what to wait for that by. */
typedef struct antiphon_promise antiphon_promise_t;
typedef struct antiphon_awaited antiphon_awaited_t;

/* Says whether work is to end. */
typedef struct antiphon_token antiphon_token_t;

/* --- fibers --- */

/* As antiphon_pool_create, of a pool whose tasks are fibers with stacks of so many bytes; 0 is 64
 * KiB. EINVAL: also no such stacks. EAGAIN: also where there is no memory for one, or another
 * runtime's fibers wait by this library. */
ANTIPHON_MUST_USE
int antiphon_fiber_pool_create(antiphon_pool_t **pool, size_t threads, const char *policy,
			       size_t stack_bytes) ANTIPHON_NOEXCEPT;

/* 1 if the caller is a fiber, else 0. */
int antiphon_fiber_is_fiber(void) ANTIPHON_NOEXCEPT;

/* Lets others run: other fibers of this thread, and after every fourth turn a task that has not
 * begun. On a thread, other threads. */
void antiphon_fiber_yield(void) ANTIPHON_NOEXCEPT;

/* As that, and costs less: tasks that have not begun run now and then. */
void antiphon_fiber_yield_soft(void) ANTIPHON_NOEXCEPT;

/* As antiphon_fiber_yield, if the fiber has run for 100 microseconds or more; else costs a
 * nanosecond or two. On a thread, does nothing. */
void antiphon_fiber_checkpoint(void) ANTIPHON_NOEXCEPT;

/* Waits for so many nanoseconds, or somewhat longer. */
void antiphon_fiber_sleep(uint64_t ns) ANTIPHON_NOEXCEPT;

/* Waits until that time. EINVAL. */
ANTIPHON_MUST_USE
int antiphon_fiber_sleep_until(int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- channels: each item is received once, in the order in which they were sent. Items are copied
 * in and out, as bytes; of more than 32 bytes each is an allocation. --- */

/* The most room that a channel may have, and the most bytes of an item. */
#define ANTIPHON_CHANNEL_MAX 1048576u
#define ANTIPHON_ITEM_MAX 1048576u

/* For items of so many bytes, 0 to ANTIPHON_ITEM_MAX, with room for so many, 1 to
 * ANTIPHON_CHANNEL_MAX, rounded up to a power of two. EINVAL: other numbers. */
ANTIPHON_MUST_USE
int antiphon_channel_create(antiphon_channel_t **channel, size_t item_bytes,
			    size_t room) ANTIPHON_NOEXCEPT;

/* Items that nobody has received are gone. Never waits. */
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

/* Receives an item to where `item` points; waits for one. EPIPE: the channel is closed, and all was
 * received. */
ANTIPHON_MUST_USE
int antiphon_channel_recv(antiphon_channel_t *channel, void *item) ANTIPHON_NOEXCEPT;

/* EAGAIN: there is no item. EPIPE. Never waits. */
ANTIPHON_MUST_USE
int antiphon_channel_tryrecv(antiphon_channel_t *channel, void *item) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_channel_timedrecv(antiphon_channel_t *channel, void *item, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Nothing is sent from now on; what was sent is received. Lets all go that wait. Never waits. */
void antiphon_channel_close(antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;

/* How many items there are, which may be otherwise at once; for how many there is room. */
size_t antiphon_channel_len(const antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;
size_t antiphon_channel_room(const antiphon_channel_t *channel) ANTIPHON_NOEXCEPT;

/* --- promises: a pointer, which one comes up with, and one waits for --- */

void antiphon_promise_create(antiphon_promise_t **promise,
			     antiphon_awaited_t **awaited) ANTIPHON_NOEXCEPT;

/* Hands the value over; the promise is gone. Never waits. */
void antiphon_promise_fulfil(antiphon_promise_t *promise, void *value) ANTIPHON_NOEXCEPT;

/* There will be no value; the promise is gone. Never waits. */
void antiphon_promise_break(antiphon_promise_t *promise) ANTIPHON_NOEXCEPT;

/* Waits for the value. EPIPE: the promise was broken. Asked again, says the same. A worker of a
 * pool without fibers runs other tasks of its pool meanwhile. */
ANTIPHON_MUST_USE
int antiphon_awaited_wait(antiphon_awaited_t *awaited, void **value) ANTIPHON_NOEXCEPT;

/* EBUSY: it is not there. EPIPE. Never waits. */
ANTIPHON_MUST_USE
int antiphon_awaited_trywait(antiphon_awaited_t *awaited, void **value) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_awaited_timedwait(antiphon_awaited_t *awaited, void **value, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* A value that nobody has had is gone; what it points to is the program's. */
void antiphon_awaited_destroy(antiphon_awaited_t *awaited) ANTIPHON_NOEXCEPT;

/* --- tokens: work that is to end is told so, and ends by itself. A token is cancelled for good, by
 * antiphon_token_cancel, at its deadline, or with its parent. --- */

/* `parent` is NULL, or a token: which may be destroyed before this one. */
void antiphon_token_create(antiphon_token_t **token,
			   const antiphon_token_t *parent) ANTIPHON_NOEXCEPT;

/* With a deadline, not after its parent's. EINVAL. */
ANTIPHON_MUST_USE
int antiphon_token_create_until(antiphon_token_t **token, const antiphon_token_t *parent,
				int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Cancels nothing. */
void antiphon_token_destroy(antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* Cancels it, and all that come of it. Takes time by how many these are; never waits. */
void antiphon_token_cancel(antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* 1 if it is cancelled, else 0. */
int antiphon_token_is_cancelled(const antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* Waits until it is cancelled. */
void antiphon_token_wait(const antiphon_token_t *token) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: it is not cancelled, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_token_timedwait(const antiphon_token_t *token, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- select: waits for the first of several things, and has that one alone.
 *
 *	antiphon_case_t cases[] = {
 *		ANTIPHON_CASE_RECV(requests, &request),
 *		ANTIPHON_CASE_TOKEN(stop),
 *	};
 *	antiphon_select(cases, 2, &chosen);
 *
 * Of several that are ready one is chosen at random, each as likely as the others. The others are
 * left as they are: what was not sent is not, an event that was not taken is set. While one waits,
 * an event may be handed to it that it does not take; it is set again then. A closed channel is
 * always ready: give its case the kind ANTIPHON_CASE_KIND_NEVER. Up to eight cases need no
 * allocation. --- */

enum antiphon_case_kind {
	ANTIPHON_CASE_KIND_NEVER = 0,
	ANTIPHON_CASE_KIND_RECV = 1,
	ANTIPHON_CASE_KIND_SEND = 2,
	ANTIPHON_CASE_KIND_EVENT = 3,
	ANTIPHON_CASE_KIND_LATCH = 4,
	ANTIPHON_CASE_KIND_TOKEN = 5,
	ANTIPHON_CASE_KIND_AWAITED = 6
};

/* Something to wait for. */
typedef struct antiphon_case {
	/* Of enum antiphon_case_kind. */
	int kind;
	/* Of the one that was chosen: 0, or EPIPE, as of receiving, sending and awaiting. */
	int code;
	void *object;
	/* Where an item is received, or sent from; where a value goes. */
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

/* Waits until one is ready; `chosen` is its number. An awaited is in one case at most. EINVAL:
 * there are no cases, or a kind that is none. */
ANTIPHON_MUST_USE
int antiphon_select(antiphon_case_t *cases, size_t count, size_t *chosen) ANTIPHON_NOEXCEPT;

/* EAGAIN: none is ready. EINVAL. Never waits. */
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
