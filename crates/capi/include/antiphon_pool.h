/* antiphon_pool.h: pools of threads that run tasks, and forks that cost nanoseconds.
 *
 *	antiphon_pool_create(&pool, 0, NULL);
 *
 *	static antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
 *	antiphon_pool_spawn(pool, &group, resize, &images[0]);
 *	antiphon_pool_spawn(pool, &group, resize, &images[1]);
 *	antiphon_task_group_wait(&group);
 *
 * A task is a function and its argument. Any thread of the pool may run it, or the thread that
 * spawns it. It must return: no exception and no longjmp may leave it, nor may its thread end or be
 * cancelled in it. What the caller did before the spawn happens before the task; what the task does
 * happens before the wait for its group returns.
 *
 * A worker that waits for a group, of its pool or of another, runs other tasks of its pool while it
 * waits, on the same stack; any other thread sleeps. A task that waits for anything else occupies
 * its worker, unless it waits in antiphon_pool_blocking. antiphon_fiber.h has pools whose tasks are
 * suspended while they wait.
 *
 * The rules of antiphon.h hold, with these exceptions: pools are made and destroyed by functions;
 * spawns allocate (without memory, the program ends); a pool cannot be used in a forked child; no
 * function may be called in signal handlers. Functions of one pool may be called by several threads
 * at a time, except antiphon_pool_destroy, which must be the last call. */

#ifndef ANTIPHON_POOL_H
#define ANTIPHON_POOL_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A pool of threads. */
typedef struct antiphon_pool antiphon_pool_t;

/* Tasks that one thread waits for, whichever pools run them. 16 bytes; all bytes zero: no tasks. */
typedef struct antiphon_task_group {
	uint64_t antiphon_private[2];
} antiphon_task_group_t;

#define ANTIPHON_TASK_GROUP_INIT { { 0, 0 } }

/* --- pools --- */

/* Makes a pool of `threads` threads; 0: one for each CPU that the caller may run on. The policy is
 * an order and a spread, such as "fifo/steal-half", optionally followed by "/blocks":
 *
 * | order      | the task that a worker runs next                                        |
 * |------------|-------------------------------------------------------------------------|
 * | lifo       | the newest, whose data is in the cache; older ones may wait for ever    |
 * | fifo       | the oldest                                                              |
 * | adaptive   | the newest, until some have waited for a millisecond                    |
 * | lifo-slot  | the newest, at most three in a row; else the oldest                     |
 * | stochastic | the oldest in 64 of 256 cases, else the newest; stochastic-10: in 10    |
 * | switch     | 16 oldest tasks, then 16 newest tasks; switch-4: 4                      |
 * | reverse    | the newest; every eighth time the oldest; reverse-3: every third        |
 *
 * | spread                | a worker without tasks takes tasks                           |
 * |-----------------------|--------------------------------------------------------------|
 * | steal-half, steal-one | of any other worker: half of them, or one                    |
 * | neighbours-13         | of the 13 nearest workers by number first: half              |
 *
 * With "/blocks", as in "lifo/steal-half/blocks", others see a worker's tasks in blocks of sixteen:
 * for many short tasks on many CPUs. A worker in a long task then keeps up to 15 tasks that it has
 * made, even if other workers are idle. Not with lifo-slot.
 *
 * Several policies may be given, separated by commas: the first is in charge until
 * antiphon_pool_put_in_charge. NULL: "lifo/steal-half", a little faster than by name.
 * EINVAL: no policy has this name, or `threads` is more than 4096. EAGAIN, or another error of the
 * system: a thread could not be started. */
ANTIPHON_MUST_USE
int antiphon_pool_create(antiphon_pool_t **pool, size_t threads,
			 const char *policy) ANTIPHON_NOEXCEPT;

/* Runs the tasks that are queued, and ends the threads. Blocks until that is done and the stages on
 * the pool are over; if the caller is a worker of the pool, returns at once, and the worker ends
 * later. Tasks of the pool must not spawn into it, or call it, any more: wait for their groups
 * first. */
void antiphon_pool_destroy(antiphon_pool_t *pool) ANTIPHON_NOEXCEPT;

/* Returns the number of threads of the pool. */
size_t antiphon_pool_threads(const antiphon_pool_t *pool) ANTIPHON_NOEXCEPT;

/* Puts the pool's policy of this number in charge; 0 is the first that was given to
 * antiphon_pool_create. Does not block. Tasks that are ready already run first, in the order of the
 * former policy. EINVAL: there is no such policy. */
int antiphon_pool_put_in_charge(antiphon_pool_t *pool, size_t policy) ANTIPHON_NOEXCEPT;

/* --- tasks --- */

/* Queues run(argument) for a worker; a worker of this pool puts it into its own queue. If there is
 * no room, the caller runs it. `group` is NULL, or a group that exists until it was waited for. */
void antiphon_pool_spawn(antiphon_pool_t *pool, antiphon_task_group_t *group,
			 void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* Same as antiphon_pool_spawn, but EAGAIN if there is no room; nothing was run then. */
ANTIPHON_MUST_USE
int antiphon_pool_tryspawn(antiphon_pool_t *pool, antiphon_task_group_t *group,
			   void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* Runs run(argument) on a worker, and waits for it. A worker of this pool runs it itself. */
void antiphon_pool_call(antiphon_pool_t *pool, void (*run)(void *argument),
			void *argument) ANTIPHON_NOEXCEPT;

/* Runs run(argument) on the calling thread; it may wait for anything, such as a file or a process.
 * If the caller is a worker, a backup thread takes over the tasks that have not begun; a pool has
 * as many backup threads as threads, but at most four. Fibers that have begun on this thread
 * wait. */
void antiphon_pool_blocking(void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* Waits until all tasks of the group are done. Only one thread may wait for a group and spawn into
 * it; tasks of the group may also spawn into it. Afterwards the group can be used again. */
void antiphon_task_group_wait(antiphon_task_group_t *group) ANTIPHON_NOEXCEPT;

/* Runs first(first_argument) and second(second_argument), the second perhaps on another worker of
 * the pool at the same time. Costs a few nanoseconds: fork as finely as you like. The second
 * becomes a task only if a worker is idle, and at most once in five times the cost of waking a
 * thread. If the caller is not a worker (see antiphon_pool_call), it runs both. */
void antiphon_join(void (*first)(void *argument), void *first_argument,
		   void (*second)(void *argument), void *second_argument) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_task_group_t, 16, 8);

#endif
