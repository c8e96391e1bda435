/* antiphon.h: locks for many-core Linux machines.
 *
 *	static antiphon_mutex_t lock = ANTIPHON_MUTEX_INIT;
 *
 *	antiphon_mutex_lock(&lock);
 *	…
 *	antiphon_mutex_unlock(&lock);
 *
 * Link with `pkg-config --cflags --libs antiphon`. For C++ there is antiphon.hpp. Beside these:
 *
 *	antiphon_event.h	to tell other threads that something has happened
 *	antiphon_pshared_event.h	and those of other processes
 *	antiphon_message.h	to have other threads run something: active messages
 *	antiphon_pool.h		threads that run tasks
 *	antiphon_fiber.h	fibers, channels, promises, select, tokens that cancel
 *	antiphon_stage.h	stages of pipelines, on fibers
 *	antiphon_net.h		sockets and files that fibers wait for
 *	antiphon_clock.h	timestamps that no shared counter is needed for
 *
 * All types: all bytes zero is the free object, so static and calloc'ed ones need no initialiser.
 * Nothing is allocated for one, and nothing has to be destroyed. A free lock that nobody waits for
 * may be copied and moved as bytes. All but the antiphon_pshared_ types are for the threads of one
 * process; a forked child may go on with what it has inherited, and owns what the thread that
 * forked owned. But a barrier, event, latch, event count or broadcast that another thread was
 * calling at that moment it makes anew: the next call may wait without end (README.md, "fork").
 *
 * All functions: arguments are valid pointers, never null. Those that return an int return 0 or an
 * error number of <errno.h>, and never EINTR; the others can't fail. Who unlocks must own the lock,
 * be it through another thread: no lock knows its owner. Who locks a mutex twice waits for ever.
 * errno is left alone. No function is a cancellation point. The functions of mutexes, spinlocks and
 * readers-writer locks may be called in signal handlers; who waits there for what the interrupted
 * thread owns waits for ever.
 *
 * Time: `clock` is CLOCK_REALTIME or CLOCK_MONOTONIC of <time.h>, and `until` a time of that clock,
 * not a span. EINVAL if `clock` is another one, or the nanoseconds are not within a second, whether
 * it would have waited or not. What is to be had without waiting is had whatever the time. */

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

/* Before the first member of what the library has on cache lines of its own. */
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

/* A mutex that sleeps. */
typedef struct antiphon_mutex {
	uint64_t antiphon_private[1];
} antiphon_mutex_t;

/* A readers-writer lock that sleeps. */
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

/* Something that is done once. */
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
/* For so many threads, 1 or more; with so many permits, ANTIPHON_SEM_MAX at most. */
#define ANTIPHON_BARRIER_INIT(parties) { { 0 }, { 0, (parties) }, { 0 } }
#define ANTIPHON_SEM_INIT(permits)     { { 0 }, { 0, (permits) } }
/* clang-format on */

/* How many permits a semaphore may have; from how many a latch can count down. */
#define ANTIPHON_SEM_MAX 2147483647u
#define ANTIPHON_LATCH_MAX 2147483647u

/* The version of the library that was found at run time, as ANTIPHON_VERSION. */
const char *antiphon_version(void) ANTIPHON_NOEXCEPT;

/* Types, for antiphon_layout. */
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

/* The size and alignment of a type in bytes, for languages that can't read this header.
 * EINVAL: the library doesn't know that type. */
ANTIPHON_MUST_USE
int antiphon_layout(int type, size_t *size, size_t *align) ANTIPHON_NOEXCEPT;

/* Makes unlocking a mutex cheaper in this process, for good: without a locked instruction. Each
 * sleep costs more then. For programs that contend little.
 * ENOTSUP: it needs x86-64, Linux 5.10 and glibc 2.35; nothing has changed.
 * From then on a child of vfork may not use a lock before it calls exec. */
ANTIPHON_MUST_USE
int antiphon_enable_light(void) ANTIPHON_NOEXCEPT;

/* --- mutex: 8 bytes --- */

void antiphon_mutex_init(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody owns it. Else the memory may be used for something else. */
int antiphon_mutex_destroy(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

void antiphon_mutex_lock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody owns it. Never waits, never fails on a free mutex. */
ANTIPHON_MUST_USE
int antiphon_mutex_trylock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_mutex_timedlock(antiphon_mutex_t *mutex, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* The mutex is not touched after another thread could have acquired it: that one may free it. */
void antiphon_mutex_unlock(antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* --- spinlock: 4 bytes. For critical sections well under a microsecond and no more threads than
 * CPUs: a waiter spins. --- */

void antiphon_spin_init(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody owns it. */
int antiphon_spin_destroy(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

void antiphon_spin_lock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody owns it. */
ANTIPHON_MUST_USE
int antiphon_spin_trylock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* As antiphon_mutex_unlock. */
void antiphon_spin_unlock(antiphon_spin_t *spin) ANTIPHON_NOEXCEPT;

/* --- readers-writer lock: 16 bytes. Readers that come wait behind a writer that waits. There are
 * three ways to be in, and each has its own unlock:
 *
 *	rdlock … rdunlock	beside other readers
 *	uplock … upunlock	the same with the right to upgrade; one at a time
 *	wrlock … wrunlock	alone
 *
 * and ways to change between them. All that read fail with EAGAIN if 8 million do already (a bug:
 * somebody forgets to unlock). --- */

void antiphon_rwlock_init(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody is in. */
int antiphon_rwlock_destroy(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EAGAIN. Who is in already may wait for ever: see rdlock_again. */
ANTIPHON_MUST_USE
int antiphon_rwlock_rdlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EAGAIN. As rdlock, and never waits if the caller is in for reading already. */
ANTIPHON_MUST_USE
int antiphon_rwlock_rdlock_again(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer is in, or waits. EAGAIN. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryrdlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EAGAIN. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedrdlock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_rdunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_wrlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody is in. */
ANTIPHON_MUST_USE
int antiphon_rwlock_trywrlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedwrlock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

/* As antiphon_mutex_unlock. */
void antiphon_rwlock_wrunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_uplock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer or another upgradable reader is in, or a writer waits. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryuplock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timeduplock(antiphon_rwlock_t *lock, int clock,
				const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_rwlock_upunlock(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Upgradable reader to writer: waits until the other readers have left; nobody writes meanwhile. */
void antiphon_rwlock_upgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: other readers are in. The caller is the upgradable reader still. */
ANTIPHON_MUST_USE
int antiphon_rwlock_tryupgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. The caller is the upgradable reader still. */
ANTIPHON_MUST_USE
int antiphon_rwlock_timedupgrade(antiphon_rwlock_t *lock, int clock,
				 const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Writer to reader; writer to upgradable reader; upgradable reader to reader. None waits, and no
 * writer comes in between. */
void antiphon_rwlock_downgrade(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;
void antiphon_rwlock_downgrade_to_upgradable(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;
void antiphon_rwlock_downgrade_upgradable(antiphon_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* --- condition variable: 32 bytes. Those that wait at a time do so with one mutex. They are
 * notified in the order in which they came. A wait may end without a notification, seldom; wait in
 * a loop. --- */

void antiphon_cond_init(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody waits. Else waits until those that were notified have left the object, though
 * they need not have the mutex yet, and the memory may be used for something else. Whoever has
 * notified must have returned. */
int antiphon_cond_destroy(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* Releases the mutex, which the caller owns, waits, and acquires it. */
void antiphon_cond_wait(antiphon_cond_t *cond, antiphon_mutex_t *mutex) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT: not notified in time; the mutex is acquired all the same. EINVAL: it did not wait. */
ANTIPHON_MUST_USE
int antiphon_cond_timedwait(antiphon_cond_t *cond, antiphon_mutex_t *mutex, int clock,
			    const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Notifies the one of the highest real-time priority, else the one that has waited longest, if any.
 * The mutex need not be owned. */
void antiphon_cond_signal(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* Notifies all that wait. */
void antiphon_cond_broadcast(antiphon_cond_t *cond) ANTIPHON_NOEXCEPT;

/* --- barrier: 32 bytes, for any number of rounds. All zero: for one thread. --- */

/* EINVAL: for 0 threads. */
ANTIPHON_MUST_USE
int antiphon_barrier_init(antiphon_barrier_t *barrier, uint32_t parties) ANTIPHON_NOEXCEPT;

/* Waits until nobody looks at the barrier any more. May be called as soon as a wait of the last
 * round has returned. */
void antiphon_barrier_destroy(antiphon_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* Waits until so many threads have come. 1 for one of them, whichever; 0 for the others. */
int antiphon_barrier_wait(antiphon_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* As wait. ETIMEDOUT: as if the caller had not come. EINVAL: it has not. */
ANTIPHON_MUST_USE
int antiphon_barrier_timedwait(antiphon_barrier_t *barrier, int clock,
			       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- semaphore: 16 bytes. All zero: no permits. Any thread may give, whoever took. --- */

/* EINVAL: more than ANTIPHON_SEM_MAX. */
ANTIPHON_MUST_USE
int antiphon_sem_init(antiphon_sem_t *sem, uint32_t permits) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody waits. */
int antiphon_sem_destroy(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

void antiphon_sem_wait(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* EBUSY: there is no permit. */
ANTIPHON_MUST_USE
int antiphon_sem_trywait(antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_sem_timedwait(antiphon_sem_t *sem, int clock,
			   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Gives so many permits; never waits. EOVERFLOW: there would be more than ANTIPHON_SEM_MAX, and
 * none is given. The semaphore is not touched after another thread could have taken them. */
int antiphon_sem_post(antiphon_sem_t *sem, uint32_t permits) ANTIPHON_NOEXCEPT;

/* How many permits there are; it may be otherwise at once. */
uint32_t antiphon_sem_value(const antiphon_sem_t *sem) ANTIPHON_NOEXCEPT;

/* --- once: 4 bytes --- */

/* Calls run(argument) if nobody has, or waits for who does; what that one has done is seen by all
 * that return. 0 if it was done. If the caller's own run returns something else that is returned,
 * it was not done, and the next caller runs its own. The run must return: an exception that leaves
 * it, or the end of its thread in it, ends the program. A run that comes here again with the same
 * object waits for itself for ever. */
int antiphon_once(antiphon_once_t *once, int (*run)(void *argument),
		  void *argument) ANTIPHON_NOEXCEPT;

/* --- readers-writer lock for processes: 4 bytes, in memory that they share, at any address. They
 * must see the same thread numbers: one PID namespace. Writers are preferred, and readers wait
 * behind one that waits for a while at most. The thread that writes must unlock.
 *
 * A writer that was killed is found by who waits for the lock: it has the lock then, and is told so
 * by EOWNERDEAD, as all are after it until one says that what the lock guards is whole again. A
 * reader that was killed stays counted, and no writer comes in. --- */

void antiphon_pshared_rwlock_init(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EOWNERDEAD: the lock is acquired, and a writer has died with it. So the others below. Who reads
 * already may wait for a while. */
int antiphon_pshared_rwlock_rdlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: a writer is in, dead or alive, or readers are and one waits. EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_tryrdlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_timedrdlock(antiphon_pshared_rwlock_t *lock, int clock,
					const struct timespec *until) ANTIPHON_NOEXCEPT;

void antiphon_pshared_rwlock_rdunlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EOWNERDEAD. */
int antiphon_pshared_rwlock_wrlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* EBUSY: somebody is in, dead or alive. EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_trywrlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EOWNERDEAD. */
ANTIPHON_MUST_USE
int antiphon_pshared_rwlock_timedwrlock(antiphon_pshared_rwlock_t *lock, int clock,
					const struct timespec *until) ANTIPHON_NOEXCEPT;

/* As antiphon_mutex_unlock. */
void antiphon_pshared_rwlock_wrunlock(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* Says, as the writer, that what the lock guards is whole again. */
void antiphon_pshared_rwlock_recovered(antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* To who is in: 0 if a writer has died with the lock and nobody has said that since, else 1. */
int antiphon_pshared_rwlock_is_whole(const antiphon_pshared_rwlock_t *lock) ANTIPHON_NOEXCEPT;

/* --- barrier for processes: 8 bytes, as above. All zero: for one thread. Who is killed before it
 * comes never comes. A process may unmap it when its own threads have returned. --- */

/* EINVAL: for 0 threads, or more than 65535. */
ANTIPHON_MUST_USE
int antiphon_pshared_barrier_init(antiphon_pshared_barrier_t *barrier,
				  uint32_t parties) ANTIPHON_NOEXCEPT;

/* Waits until so many threads have come. 1 for one of them, whichever; 0 for the others. */
int antiphon_pshared_barrier_wait(antiphon_pshared_barrier_t *barrier) ANTIPHON_NOEXCEPT;

/* As wait. ETIMEDOUT: as if the caller had not come. EINVAL: it has not. */
ANTIPHON_MUST_USE
int antiphon_pshared_barrier_timedwait(antiphon_pshared_barrier_t *barrier, int clock,
				       const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- policies: which waiter is served next. "numa" (from the start: those of one socket together),
 * "distance" (the nearest), "priority" (the most urgent, and equals by "numa"), "none" (as they
 * came); "priority+distance" and "priority+none" join two. --- */

/* May be called at any time, also while threads wait. EINVAL: no such policy, nothing changed. */
int antiphon_mutex_set_policy(antiphon_mutex_t *mutex, const char *policy) ANTIPHON_NOEXCEPT;
int antiphon_rwlock_set_policy(antiphon_rwlock_t *lock, const char *policy) ANTIPHON_NOEXCEPT;
int antiphon_spin_set_policy(antiphon_spin_t *spin, const char *policy) ANTIPHON_NOEXCEPT;

/* How urgent the calling thread is to locks that have "priority", from its next wait on: 0 to 255,
 * larger goes first. -1: as the kernel holds it to be (20 - nice, or 100 + the real-time priority),
 * which is what holds for a new thread. EINVAL: another number. */
int antiphon_set_priority(int rank) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

/* The ABI: the library asserts the same. For the other headers too. */
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
