/* antiphon.h: locks for many-core Linux machines.
 *
 *	static antiphon_mutex_t lock = ANTIPHON_MUTEX_INIT;
 *
 *	antiphon_mutex_lock(&lock);
 *	…
 *	antiphon_mutex_unlock(&lock);
 *
 * Link with `pkg-config --cflags --libs antiphon`. C++ programs include antiphon.hpp. The other
 * headers:
 *
 *	antiphon_event.h	events between threads: event, latch, event count, broadcast
 *	antiphon_pshared_event.h	the same between processes
 *	antiphon_message.h	active messages: functions that another thread runs
 *	antiphon_pool.h		pools of threads that run tasks
 *	antiphon_fiber.h	fibers, channels, promises, select, cancellation tokens
 *	antiphon_stage.h	pipelines of stages, on fibers
 *	antiphon_net.h		sockets and files that fibers wait for
 *	antiphon_loop.h		event loops
 *	antiphon_coop.h		event loops that share a CPU
 *	antiphon_clock.h	timestamps without a shared counter
 *
 * All types: an object whose bytes are all zero is valid and free, so static and calloc'ed objects
 * need no initialiser. An object allocates nothing and need not be destroyed. A free lock without
 * waiters may be copied and moved as bytes. All types except antiphon_pshared_ ones are for the
 * threads of one process. A forked child may use the objects that it has inherited, and owns the
 * locks that the forking thread owned. Exception: if another thread was in a call on a barrier,
 * event, latch, event count or broadcast at the time of the fork, the child must initialise that
 * object again; otherwise the next call may wait for ever (README.md, "fork").
 *
 * All functions: arguments are valid pointers, never null. Functions that return int return 0 or an
 * error number of <errno.h>, never EINTR; the others can't fail. errno is not changed. No function
 * is a cancellation point. Only the owner may unlock a lock; another thread may unlock it on behalf
 * of the owner, because locks don't know their owners. A thread that locks a mutex twice waits for
 * ever. Functions of mutexes, spinlocks and readers-writer locks may be called in signal handlers;
 * a handler that waits for a lock of the interrupted thread waits for ever.
 *
 * Time: `clock` is CLOCK_REALTIME or CLOCK_MONOTONIC of <time.h>. `until` is a point in time of
 * that clock, not a duration. EINVAL if `clock` is another clock or the nanoseconds are not below
 * 10^9, even if the call would not have waited. A free lock is acquired even if `until` has
 * passed. */

#ifndef ANTIPHON_H
#define ANTIPHON_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__linux__) || !defined(__LP64__)
#error "antiphon is for 64-bit Linux"
#endif

#define ANTIPHON_VERSION "0.1.0"

#if defined(__cplusplus)
#define ANTIPHON_NOEXCEPT noexcept
#else
#define ANTIPHON_NOEXCEPT
#endif

#if defined(__GNUC__)
#define ANTIPHON_MUST_USE __attribute__((__warn_unused_result__))
#else
#define ANTIPHON_MUST_USE
#endif

/* Stands before the first member of types that have cache lines of their own. */
#if defined(__cplusplus)
#define ANTIPHON_ALIGNED(bytes) alignas(bytes)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ANTIPHON_ALIGNED(bytes) _Alignas(bytes)
#else
#define ANTIPHON_ALIGNED(bytes) __attribute__((__aligned__(bytes)))
#endif

struct timespec;

#if defined(__cplusplus)
extern "C" {
#endif

/* A mutex whose waiters sleep. */
typedef struct antiphon_mutex {
	uint64_t antiphon_private[1];
} antiphon_mutex_t;

/* A readers-writer lock whose waiters sleep. */
typedef struct antiphon_rwlock {
	uint64_t antiphon_private[2];
} antiphon_rwlock_t;

/* A spinlock. */
typedef struct antiphon_spin {
	uint32_t antiphon_private[1];
} antiphon_spin_t;

/* A condition variable. */
typedef struct antiphon_cond {
	uint64_t antiphon_private[4];
} antiphon_cond_t;

/* A barrier. */
typedef struct antiphon_barrier {
	uint64_t antiphon_private[1];
	uint32_t antiphon_parties[2];
	uint64_t antiphon_list[2];
} antiphon_barrier_t;

/* A counting semaphore. */
typedef struct antiphon_sem {
	uint64_t antiphon_private[1];
	uint32_t antiphon_permits[2];
} antiphon_sem_t;

/* A one-time initialisation. */
typedef struct antiphon_once {
	uint32_t antiphon_private[1];
} antiphon_once_t;

/* A readers-writer lock in memory that several processes share. */
typedef struct antiphon_pshared_rwlock {
	uint32_t antiphon_private[1];
} antiphon_pshared_rwlock_t;

/* A barrier in memory that several processes share. */
typedef struct antiphon_pshared_barrier {
	uint32_t antiphon_private[1];
	uint32_t antiphon_parties[1];
} antiphon_pshared_barrier_t;

/* clang-format off */
#define ANTIPHON_MUTEX_INIT  { { 0 } }
#define ANTIPHON_RWLOCK_INIT { { 0, 0 } }
#define ANTIPHON_SPIN_INIT   { { 0 } }
#define ANTIPHON_COND_INIT   { { 0, 0, 0, 0 } }
#define ANTIPHON_ONCE_INIT   { { 0 } }
#define ANTIPHON_PSHARED_RWLOCK_INIT { { 0 } }
/* For `parties` threads, at least 1; with `permits` permits, at most ANTIPHON_SEM_MAX. */
#define ANTIPHON_BARRIER_INIT(parties) { { 0 }, { 0, (parties) }, { 0 } }
#define ANTIPHON_SEM_INIT(permits)     { { 0 }, { 0, (permits) } }
/* clang-format on */

/* The largest number of permits of a semaphore; the largest count of a latch. */
#define ANTIPHON_SEM_MAX 2147483647u
#define ANTIPHON_LATCH_MAX 2147483647u

/* Returns the version of the loaded library, in the form of ANTIPHON_VERSION. */
const char *antiphon_version(void) ANTIPHON_NOEXCEPT;

/* Types, as arguments of antiphon_layout. */
enum antiphon_type {
	ANTIPHON_TYPE_MUTEX = 1,
	ANTIPHON_TYPE_RWLOCK = 2,
	ANTIPHON_TYPE_SPIN = 3,
	ANTIPHON_TYPE_COND = 4,
	ANTIPHON_TYPE_BARRIER = 5,
	ANTIPHON_TYPE_SEM = 6,
	ANTIPHON_TYPE_ONCE = 7,
	ANTIPHON_TYPE_PSHARED_RWLOCK = 8,
	ANTIPHON_TYPE_PSHARED_BARRIER = 9,
	ANTIPHON_TYPE_EVENT = 10,
	ANTIPHON_TYPE_LATCH = 11,
	ANTIPHON_TYPE_EVENT_COUNT = 12,
	ANTIPHON_TYPE_EVENT_KEY = 13,
	ANTIPHON_TYPE_BROADCAST = 14,
	ANTIPHON_TYPE_PSHARED_EVENT = 15,
	ANTIPHON_TYPE_CLOCK = 16,
	ANTIPHON_TYPE_MESSAGE = 17,
	ANTIPHON_TYPE_DELIVERED = 18,
	ANTIPHON_TYPE_PSHARED_LATCH = 19,
	ANTIPHON_TYPE_PSHARED_BROADCAST = 20,
	ANTIPHON_TYPE_TASK_GROUP = 21,
	ANTIPHON_TYPE_CASE = 22,
	ANTIPHON_TYPE_STAGE_OPTIONS = 23,
	ANTIPHON_TYPE_STAGE_STATS = 24,
	ANTIPHON_TYPE_LOOP_EVENT = 25,
	ANTIPHON_TYPE_LOOP_TURN = 26,
	ANTIPHON_TYPE_LOOP_STATS = 27,
	ANTIPHON_TYPE_COOP = 28,
	ANTIPHON_TYPE_COOP_ANSWER = 29,
	ANTIPHON_TYPE_COOP_STATUS = 30,
	ANTIPHON_TYPE_LOOP_OPTIONS = 31,
	ANTIPHON_TYPE_LOOP_TROUBLE = 32,
	ANTIPHON_TYPE_LOOP_BUCKET = 33,
	ANTIPHON_TYPE_LOOP_SIGHTING = 34,
	ANTIPHON_TYPE_SPLIT_OPTIONS = 35,
	ANTIPHON_TYPE_SPLIT_STATS = 36
};

/* Stores the size and alignment of a type in bytes, for languages that can't read this header.
 * EINVAL: unknown type. */
ANTIPHON_MUST_USE
int antiphon_layout(int type, size_t *size, size_t *align) ANTIPHON_NOEXCEPT;

/* Makes unlocking a mutex cheaper in this process, without a locked instruction, and each sleep
 * more expensive. Cannot be undone. For programs with little contention.
 * ENOTSUP: needs x86-64, Linux 5.10 and glibc 2.35; nothing has changed.
 * Afterwards a child of vfork must not use a lock before it calls exec. */
ANTIPHON_MUST_USE
int antiphon_enable_light(void) ANTIPHON_NOEXCEPT;

/* --- mutex: 8 bytes --- */

void antiphon_mutex_init(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* EBUSY: the mutex is locked. On success its memory may be reused. */
int antiphon_mutex_destroy(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

void antiphon_mutex_lock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* EBUSY: the mutex is locked. Never waits, and never fails on a free mutex. */
ANTIPHON_MUST_USE
int antiphon_mutex_trylock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_mutex_timedlock(antiphon_mutex_t *mutex, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* The mutex is not touched after another thread could have acquired it, so the new owner may free
 * its memory. */
void antiphon_mutex_unlock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* --- spinlock: 4 bytes. For critical sections well under a microsecond and no more threads than
 * CPUs: a waiter spins. --- */

void antiphon_spin_init(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* EBUSY: the spinlock is locked. */
int antiphon_spin_destroy(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

void antiphon_spin_lock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* EBUSY: the spinlock is locked. */
ANTIPHON_MUST_USE
int antiphon_spin_trylock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* The spinlock is not touched after another thread could have acquired it. */
void antiphon_spin_unlock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* --- readers-writer lock: 16 bytes. Arriving readers wait behind a waiting writer. There are three
 * ways to hold it, and each has its own unlock:
 *
 *	rdlock … rdunlock	a reader, beside other readers
 *	uplock … upunlock	an upgradable reader, beside other readers; one at a time
 *	wrlock … wrunlock	the writer, alone
 *
 * and functions to change between them. All functions that acquire for reading fail with EAGAIN if
 * there are 8 million readers already (a bug: an unlock is missing). --- */

void antiphon_rwlock_init(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a reader or writer holds the lock. */
int antiphon_rwlock_destroy(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EAGAIN. A caller that is a reader already may wait for ever: see rdlock_again. */
ANTIPHON_MUST_USE
int antiphon_rwlock_rdlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Same as rdlock, but never waits if the caller is a reader already. EAGAIN. */
ANTIPHON_MUST_USE
int antiphon_rwlock_rdlock_again(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer holds the lock, or waits for it. EAGAIN. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryrdlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EAGAIN. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedrdlock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_rdunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_wrlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a reader or writer holds the lock. */
ANTIPHON_MUST_USE
int antiphon_rwlock_trywrlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedwrlock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

/* The lock is not touched after another thread could have acquired it. */
void antiphon_rwlock_wrunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_uplock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer or another upgradable reader holds the lock, or a writer waits. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryuplock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timeduplock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_upunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Upgradable reader to writer: waits until the other readers have left; no other writer comes in
 * between. */
void antiphon_rwlock_upgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: there are other readers. The caller remains the upgradable reader. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryupgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL: the caller remains the upgradable reader. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedupgrade(antiphon_rwlock_t *lock, int clock,
				 const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Writer to reader; writer to upgradable reader; upgradable reader to reader. These functions never
 * wait, and no writer comes in between. */
void antiphon_rwlock_downgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;
void antiphon_rwlock_downgrade_to_upgradable(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;
void antiphon_rwlock_downgrade_upgradable(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* --- condition variable: 32 bytes. All threads that wait at the same time must use the same mutex.
 * They are notified in order of arrival. A wait may rarely end without a notification: wait in a
 * loop. --- */

void antiphon_cond_init(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread waits. Otherwise waits until all notified threads have left the object (they may
 * still wait for the mutex); then its memory may be reused. Calls of signal and broadcast must have
 * returned. */
int antiphon_cond_destroy(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* Releases the mutex, which the caller must own, waits, and acquires the mutex again. */
void antiphon_cond_wait(antiphon_cond_t *cond, antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: not notified in time; the mutex is acquired again. EINVAL: the call did not wait, and
 * the caller still owns the mutex. */
ANTIPHON_MUST_USE
int antiphon_cond_timedwait(antiphon_cond_t *cond, antiphon_mutex_t *mutex, int clock,
			    const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Notifies the waiter with the highest real-time priority, or else the waiter that has waited
 * longest. Does nothing if no thread waits. The caller need not own the mutex. */
void antiphon_cond_signal(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* Notifies all waiters. */
void antiphon_cond_broadcast(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* --- barrier: 32 bytes, for any number of rounds. All bytes zero: a barrier for one thread. --- */

/* EINVAL: `parties` is 0. */
ANTIPHON_MUST_USE
int antiphon_barrier_init(antiphon_barrier_t *barrier, uint32_t parties) ANTIPHON_NOEXCEPT;

/* Waits until no thread accesses the barrier any more. May be called as soon as one wait of the
 * last round has returned. */
void antiphon_barrier_destroy(antiphon_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* Waits until `parties` threads have come. Returns 1 to one of them, and 0 to the others. */
int antiphon_barrier_wait(antiphon_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* Same as wait. ETIMEDOUT: the caller is no longer counted. EINVAL: it was not counted. */
ANTIPHON_MUST_USE
int antiphon_barrier_timedwait(antiphon_barrier_t *barrier, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- semaphore: 16 bytes. All bytes zero: no permits. Any thread may post, not only those that
 * have taken a permit. --- */

/* EINVAL: `permits` is more than ANTIPHON_SEM_MAX. */
ANTIPHON_MUST_USE
int antiphon_sem_init(antiphon_sem_t *sem, uint32_t permits) ANTIPHON_NOEXCEPT;

/* EBUSY: a thread waits. */
int antiphon_sem_destroy(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

void antiphon_sem_wait(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* EBUSY: there is no permit. */
ANTIPHON_MUST_USE
int antiphon_sem_trywait(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_sem_timedwait(antiphon_sem_t *sem, int clock,
			   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Adds `permits`; never waits. EOVERFLOW: there would be more than ANTIPHON_SEM_MAX; none is added.
 * The semaphore is not touched after another thread could have taken the permits. */
int antiphon_sem_post(antiphon_sem_t *sem, uint32_t permits) ANTIPHON_NOEXCEPT;

/* Returns the number of permits, which may be out of date at once. */
uint32_t antiphon_sem_value(const antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* --- once: 4 bytes --- */

/* Calls run(argument) unless a call with this object has succeeded already; if another thread is in
 * such a call, waits for it. Returns 0 if the initialisation is done; its effects are visible to
 * all callers that got 0. If the caller's own `run` returns a value other than 0, that value is
 * returned, the initialisation is not done, and the next caller runs its own. `run` must return: an
 * exception that leaves it, or the end of its thread in it, ends the program. A `run` that calls
 * this with the same object waits for itself for ever. */
int antiphon_once(antiphon_once_t *once, int (*run)(void *argument),
		  void *argument) ANTIPHON_NOEXCEPT;

/* --- readers-writer lock for processes: 4 bytes, in memory that they share, at any address. All
 * processes must be in one PID namespace, so that they see the same thread numbers. Writers are
 * preferred; readers wait behind a waiting writer, but only for a limited time. The thread that has
 * locked for writing must unlock.
 *
 * If a writer is killed, a waiter finds out and acquires the lock with EOWNERDEAD. So do all later
 * callers, until one calls antiphon_pshared_rwlock_recovered. A reader that is killed stays
 * counted, and no writer gets the lock. --- */

void antiphon_pshared_rwlock_init(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EOWNERDEAD, here and below: the lock is acquired, but a writer has died while it held it. A
 * caller that is a reader already may wait for a while. */
int antiphon_pshared_rwlock_rdlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer, dead or alive, holds the lock; or readers do, and a writer waits. EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_tryrdlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_timedrdlock(antiphon_pshared_rwlock_t *lock, int clock,
					const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_pshared_rwlock_rdunlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EOWNERDEAD. */
int antiphon_pshared_rwlock_wrlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a reader or writer, dead or alive, holds the lock. EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_trywrlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_timedwrlock(antiphon_pshared_rwlock_t *lock, int clock,
					const struct timespec *until) ANTIPHON_NOEXCEPT;

/* The lock is not touched after another thread could have acquired it. */
void antiphon_pshared_rwlock_wrunlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Called by the writer: the data that the lock guards is consistent again. */
void antiphon_pshared_rwlock_recovered(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Called by a reader or writer. Returns 0 if a writer has died while it held the lock and
 * antiphon_pshared_rwlock_recovered was not called afterwards, else 1. */
int antiphon_pshared_rwlock_is_whole(const antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* --- barrier for processes: 8 bytes, in memory that they share, at any address, in one PID
 * namespace. All bytes zero: for one thread. If a thread is killed before it has come, the others
 * wait for ever. A process may unmap the barrier when its own threads have returned. --- */

/* EINVAL: `parties` is 0 or more than 65535. */
ANTIPHON_MUST_USE
int antiphon_pshared_barrier_init(antiphon_pshared_barrier_t *barrier,
				  uint32_t parties) ANTIPHON_NOEXCEPT;

/* Waits until `parties` threads have come. Returns 1 to one of them, and 0 to the others. */
int antiphon_pshared_barrier_wait(antiphon_pshared_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* Same as wait. ETIMEDOUT: the caller is no longer counted. EINVAL: it was not counted. */
ANTIPHON_MUST_USE
int antiphon_pshared_barrier_timedwait(antiphon_pshared_barrier_t *barrier, int clock,
				       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- policies: which waiter is served next. "numa" (the default: waiters of one socket together),
 * "distance" (the nearest), "priority" (the most urgent; equals by "numa"), "none" (in order of
 * arrival); "priority+distance" and "priority+none" join two. --- */

/* May be called at any time, also while threads wait. EINVAL: no such policy; nothing changed. */
int antiphon_mutex_set_policy(antiphon_mutex_t *mutex, const char *policy) ANTIPHON_NOEXCEPT;
int antiphon_rwlock_set_policy(antiphon_rwlock_t *lock, const char *policy) ANTIPHON_NOEXCEPT;
int antiphon_spin_set_policy(antiphon_spin_t *spin, const char *policy) ANTIPHON_NOEXCEPT;

/* Sets the urgency of the calling thread for locks with "priority", from its next wait on: 0 to
 * 255, larger numbers go first. -1, the default: the kernel's value (20 - nice, or 100 + the
 * real-time priority). EINVAL: another number. */
int antiphon_set_priority(int rank) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

/* Checks of the ABI, for all headers; the library asserts the same numbers. */
#if defined(__cplusplus)
#define ANTIPHON_ASSERT_LAYOUT(type, size, align) \
	static_assert(sizeof(type) == (size) && alignof(type) == (align), #type)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ANTIPHON_ASSERT_LAYOUT(type, size, align) \
	_Static_assert(sizeof(type) == (size) && _Alignof(type) == (align), #type)
#else
#define ANTIPHON_ASSERT_LAYOUT(type, size, align) \
	typedef char type##_has_size[sizeof(type) == (size) ? 1 : -1]
#endif
ANTIPHON_ASSERT_LAYOUT(antiphon_mutex_t, 8, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_rwlock_t, 16, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_spin_t, 4, 4);
ANTIPHON_ASSERT_LAYOUT(antiphon_cond_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_barrier_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_sem_t, 16, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_once_t, 4, 4);
ANTIPHON_ASSERT_LAYOUT(antiphon_pshared_rwlock_t, 4, 4);
ANTIPHON_ASSERT_LAYOUT(antiphon_pshared_barrier_t, 8, 4);

#endif
