/* antiphon_pool.h: threads that run tasks, and forks that cost nanoseconds.
 *
 *	antiphon_pool_create(&pool, 0, NULL);
 *
 *	static antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
 *	antiphon_pool_spawn(pool, &group, resize, &images[0]);
 *	antiphon_pool_spawn(pool, &group, resize, &images[1]);
 *	antiphon_task_group_wait(&group);
 *
 * A task is a function and its argument. Any thread of the pool may run it, or the one that spawns
 * it; it must return: no exception and no longjmp may leave it, nor may its thread end or be
 * cancelled in it. What was done before it was spawned happens before it; what it does happens
 * before the return of the wait for its group.
 *
 * A worker that waits for a group, of its pool or of another, runs other tasks of its pool
 * meanwhile, on the same stack; any other thread sleeps. A task that waits for something else
 * keeps its worker from others, but in antiphon_pool_blocking. antiphon_fiber.h has pools whose
 * tasks are suspended where they wait.
 *
 * As antiphon.h says of all functions, but: pools are made and destroyed by the functions here,
 * and spawns allocate (without memory, the program ends); a pool is of no use in a forked child;
 * and no function may be called in signal handlers. Functions of one pool may be called by several
 * threads at a time, but for antiphon_pool_destroy, which is to be the last. */

#ifndef ANTIPHON_POOL_H
#define ANTIPHON_POOL_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Threads that run tasks. */
typedef struct antiphon_pool antiphon_pool_t;

/* Tasks that one thread waits for, whichever pools run them. 16 bytes; zeroes are none. */
typedef struct antiphon_task_group {
	uint64_t antiphon_private[2];
} antiphon_task_group_t;

#define ANTIPHON_TASK_GROUP_INIT { { 0, 0 } }

/* --- pools --- */

/* A pool of so many threads; 0: one for each CPU that the caller may run on. The policy is an order
 * and a spread, as "fifo/steal-half", and perhaps "/blocks":
 *
 * | order      | which of its tasks a worker runs next                                   |
 * |------------|-------------------------------------------------------------------------|
 * | lifo       | the last, whose data is in the cache; older ones may wait without end   |
 * | fifo       | the first                                                               |
 * | adaptive   | the last, until some have waited for a millisecond                      |
 * | lifo-slot  | the last, three in a row at most; else the first                        |
 * | stochastic | the first in 64 of 256 cases, else the last; stochastic-10: in 10       |
 * | switch     | 16 first ones, then 16 last ones; switch-4: 4                           |
 * | reverse    | the last; each eighth time the first; reverse-3: each third             |
 *
 * | spread                | what a worker takes that has none                            |
 * |-----------------------|--------------------------------------------------------------|
 * | steal-half, steal-one | of any other                                                 |
 * | neighbours-13         | half, of the 13 nearest by number first                      |
 *
 * With "/blocks", as "lifo/steal-half/blocks", a worker has others find its tasks by sixteens: for
 * many short tasks on many CPUs. One that takes long keeps up to 15 that it has made, though others
 * have nothing to do. There is none for lifo-slot.
 *
 * Several of these with commas between: the first is in charge, until antiphon_pool_put_in_charge.
 * NULL: "lifo/steal-half", which by NULL takes a little less time. EINVAL: no policy has this name,
 * or these are more than 4096 threads. EAGAIN, or what else the system says: a thread could not be
 * started. */
ANTIPHON_MUST_USE
int antiphon_pool_create(antiphon_pool_t **pool, size_t threads,
			 const char *policy) ANTIPHON_NOEXCEPT;

/* Runs what is there, and ends the threads. Waits for that, and for the end of the stages that are
 * on the pool, but in a worker of this pool, which goes on and ends later. No task of the pool may
 * spawn into it, or call it, from now on: wait for the groups of those that do first. */
void antiphon_pool_destroy(antiphon_pool_t *pool) ANTIPHON_NOEXCEPT;

/* How many threads the pool has. */
size_t antiphon_pool_threads(const antiphon_pool_t *pool) ANTIPHON_NOEXCEPT;

/* Has the pool's policy of this number decide from now on: 0 is the first of those that
 * antiphon_pool_create was given. Does not block. What is ready already is run first, as the policy
 * had it that was in charge. EINVAL: the pool was not given so many. */
int antiphon_pool_put_in_charge(antiphon_pool_t *pool, size_t policy) ANTIPHON_NOEXCEPT;

/* --- tasks --- */

/* Has a worker run `run(argument)`; a worker of this pool puts it into its own queue. Where there
 * is no room, runs it here. `group` is NULL, or one that is there until it was waited for. */
void antiphon_pool_spawn(antiphon_pool_t *pool, antiphon_task_group_t *group,
			 void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* As antiphon_pool_spawn. EAGAIN: there is no room; nothing was run. */
ANTIPHON_MUST_USE
int antiphon_pool_tryspawn(antiphon_pool_t *pool, antiphon_task_group_t *group,
			   void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* Has a worker run `run(argument)`, and waits for it. A worker of this pool runs it itself. */
void antiphon_pool_call(antiphon_pool_t *pool, void (*run)(void *argument),
			void *argument) ANTIPHON_NOEXCEPT;

/* Runs `run(argument)` here, which may wait for anything: a file, another process. If the caller is
 * a worker, another thread takes over the tasks that have not begun, as long as there is one to
 * spare: as many as the pool has, and four at most. Fibers that have begun on this thread wait. */
void antiphon_pool_blocking(void (*run)(void *argument), void *argument) ANTIPHON_NOEXCEPT;

/* Waits until all tasks of the group are done. One thread waits, and spawns into the group; so may
 * its tasks. Then the group is as new. */
void antiphon_task_group_wait(antiphon_task_group_t *group) ANTIPHON_NOEXCEPT;

/* Runs first(first_argument) and second(second_argument), the second perhaps on another worker of
 * the pool meanwhile. It costs some nanoseconds: fork as finely as you like. The second becomes a
 * task where a worker has nothing to do, and no more often than five times what waking it takes.
 * On a thread that is no worker (see antiphon_pool_call) both are run here. */
void antiphon_join(void (*first)(void *argument), void *first_argument,
		   void (*second)(void *argument), void *second_argument) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_task_group_t, 16, 8);

#endif
