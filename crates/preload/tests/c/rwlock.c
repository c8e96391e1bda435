/* Return values of the functions on readers-writer locks, by kind, and the order in which threads
 * come in. The argument is `ours` under the preload library: the greatest number of readers, and
 * the effect of an unlock too many, differ from the C library. */
#include "check.h"

enum { KINDS = 4, SHARED = 3, CUR_WRITER = 24, READERS_AT_MOST = 1 << 23 };
static int ours;

/* Kinds 0 to 2 are the C library's; the last is shared between processes. */
static pthread_rwlock_t make(int kind)
{
	pthread_rwlock_t lock;
	pthread_rwlockattr_t attributes;
	IS(pthread_rwlockattr_init(&attributes), 0);
	if (kind == SHARED)
		IS(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	else
		IS(pthread_rwlockattr_setkind_np(&attributes, kind), 0);
	memset(&lock, 0xff, sizeof lock);
	IS(pthread_rwlock_init(&lock, &attributes), 0);
	IS(pthread_rwlockattr_destroy(&attributes), 0);
	return lock;
}

static struct timespec soon(clockid_t clock)
{
	return in_ms(clock, 4);
}

/* Every call, by one name for each: what it returns. */
static long rdlock(void *lock) { return pthread_rwlock_rdlock(lock); }
static long wrlock(void *lock) { return pthread_rwlock_wrlock(lock); }
static long tryrdlock(void *lock) { return pthread_rwlock_tryrdlock(lock); }
static long trywrlock(void *lock) { return pthread_rwlock_trywrlock(lock); }

static long timedrdlock(void *lock)
{
	struct timespec until = soon(CLOCK_REALTIME);
	int code = pthread_rwlock_timedrdlock(lock, &until);
	YES(code != ETIMEDOUT || passed(CLOCK_REALTIME, &until));
	return code;
}

static long timedwrlock(void *lock)
{
	struct timespec until = soon(CLOCK_REALTIME);
	int code = pthread_rwlock_timedwrlock(lock, &until);
	YES(code != ETIMEDOUT || passed(CLOCK_REALTIME, &until));
	return code;
}

static long clockrdlock(void *lock)
{
	struct timespec until = soon(CLOCK_MONOTONIC);
	int code = pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until);
	YES(code != ETIMEDOUT || passed(CLOCK_MONOTONIC, &until));
	return code;
}

static long clockwrlock(void *lock)
{
	struct timespec until = soon(CLOCK_MONOTONIC);
	int code = pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until);
	YES(code != ETIMEDOUT || passed(CLOCK_MONOTONIC, &until));
	return code;
}

typedef long call(void *lock);
static call *const readers[] = {rdlock, tryrdlock, timedrdlock, clockrdlock};
static call *const writers[] = {wrlock, trywrlock, timedwrlock, clockwrlock};

/* Calls `run(lock)` in a thread of its own, which unlocks what it has locked. */
struct visit {
	call *run;
	pthread_rwlock_t *lock;
};

static void *come_and_go(void *argument)
{
	struct visit *visit = argument;
	long code = visit->run(visit->lock);
	if (code == 0)
		IS(pthread_rwlock_unlock(visit->lock), 0);
	return (void *)code;
}

static long visits(call *run, pthread_rwlock_t *lock)
{
	struct visit visit = {run, lock};
	return elsewhere(come_and_go, &visit);
}

static void unlock(pthread_rwlock_t *lock)
{
	IS(pthread_rwlock_unlock(lock), 0);
}

static void wrong_times(pthread_rwlock_t *lock)
{
	struct timespec wrong[] = {{0, -1}, {0, 1000000000}}, past = {-5, 0}, now = {1, 0};
	for (int at = 0; at < 2; at++) {
		/* This holds also for a lock that is free. */
		IS(pthread_rwlock_timedrdlock(lock, &wrong[at]), EINVAL);
		IS(pthread_rwlock_timedwrlock(lock, &wrong[at]), EINVAL);
		IS(pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, &wrong[at]), EINVAL);
		IS(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &wrong[at]), EINVAL);
	}
	clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC_RAW, 4711, -1};
	for (int at = 0; at < 4; at++) {
		IS(pthread_rwlock_clockrdlock(lock, clocks[at], &now), EINVAL);
		IS(pthread_rwlock_clockwrlock(lock, clocks[at], &now), EINVAL);
	}
	/* A free lock is locked whenever the deadline was. */
	IS(pthread_rwlock_timedrdlock(lock, &past), 0);
	unlock(lock);
	IS(pthread_rwlock_timedwrlock(lock, &past), 0);
	unlock(lock);
}

static long timedrdlock_past(void *lock)
{
	struct timespec past = {-5, 0};
	return pthread_rwlock_timedrdlock(lock, &past);
}

static long timedwrlock_past(void *lock)
{
	struct timespec past = {0, 0};
	return pthread_rwlock_timedwrlock(lock, &past);
}

static void every_kind(int kind)
{
	pthread_rwlock_t lock = make(kind);
	volatile int *writer = (int *)((char *)&lock + CUR_WRITER);
	wrong_times(&lock);
	for (int at = 0; at < 4; at++) {
		/* A writer holds the lock, by any call. */
		IS(*writer, 0);
		IS(writers[at](&lock), 0);
		IS(*writer, gettid());
		for (int other = 0; other < 4; other++) {
			int busy = other == 1 ? EBUSY : ETIMEDOUT;
			if (other != 0) {
				IS(visits(readers[other], &lock), busy);
				IS(visits(writers[other], &lock), busy);
			}
			/* The writer itself is told, unless it tries. */
			IS(readers[other](&lock), other == 1 ? EBUSY : EDEADLK);
			IS(writers[other](&lock), other == 1 ? EBUSY : EDEADLK);
		}
		IS(visits(timedrdlock_past, &lock), ETIMEDOUT);
		IS(visits(timedwrlock_past, &lock), ETIMEDOUT);
		wait: unlock(&lock);
		IS(*writer, 0);
		/* Readers are in. */
		IS(readers[at](&lock), 0);
		IS(*writer, 0);
		for (int other = 0; other < 4; other++) {
			IS(visits(readers[other], &lock), 0);
			/* The same thread again. */
			IS(readers[other](&lock), 0);
			if (other != 0)
				IS(visits(writers[other], &lock), other == 1 ? EBUSY : ETIMEDOUT);
			unlock(&lock);
		}
		/* A reader that writes waits for itself. */
		IS(pthread_rwlock_trywrlock(&lock), EBUSY);
		IS(timedwrlock(&lock), ETIMEDOUT);
		unlock(&lock);
		/* It was the last place for a reader. */
		if (visits(trywrlock, &lock)) {
			failures++;
			goto wait;
		}
	}
	IS(pthread_rwlock_destroy(&lock), 0);
	IS(pthread_rwlock_init(&lock, NULL), 0);
	IS(pthread_rwlock_wrlock(&lock), 0);
	IS(pthread_rwlock_destroy(&lock), 0);
	unlock(&lock);
}

/* Attributes are the C library's. */
static void attributes(void)
{
	pthread_rwlockattr_t attributes;
	int value = -1;
	IS(pthread_rwlockattr_init(&attributes), 0);
	IS(pthread_rwlockattr_setkind_np(&attributes, 3), EINVAL);
	IS(pthread_rwlockattr_setpshared(&attributes, 2), EINVAL);
	IS(pthread_rwlockattr_getkind_np(&attributes, &value), 0);
	IS(value, PTHREAD_RWLOCK_PREFER_READER_NP);
	IS(pthread_rwlockattr_getpshared(&attributes, &value), 0);
	IS(value, PTHREAD_PROCESS_PRIVATE);
}

/* A writer that waits, and says when it has come in. */
static int wrote;

static void *write_once(void *lock)
{
	IS(pthread_rwlock_wrlock(lock), 0);
	__atomic_store_n(&wrote, 1, __ATOMIC_RELAXED);
	unlock(lock);
	return NULL;
}

/* A reader may read again though a writer waits, but not where writers are preferred. */
static void recursion(pthread_rwlock_t *lock, int writers_first)
{
	IS(pthread_rwlock_rdlock(lock), 0);
	wrote = 0;
	pthread_t writer = start(write_once, lock);
	if (writers_first) {
		/* Once the writer waits, no reader gets the lock. */
		int code;
		while ((code = pthread_rwlock_tryrdlock(lock)) == 0) {
			unlock(lock);
			usleep(1000);
		}
		IS(code, EBUSY);
		IS(timedrdlock(lock), ETIMEDOUT);
		IS(visits(clockrdlock, lock), ETIMEDOUT);
	} else {
		settle();
		for (int at = 0; at < 4; at++) {
			IS(readers[at](lock), 0);
			IS(visits(readers[at], lock), 0);
		}
		for (int at = 0; at < 4; at++)
			unlock(lock);
	}
	IS(wrote, 0);
	unlock(lock);
	join(writer);
	IS(wrote, 1);
	IS(pthread_rwlock_trywrlock(lock), 0);
	unlock(lock);
}

/* Where writers are preferred, readers whose sections overlap starve none. */
static int stop;

static void *read_on(void *lock)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		IS(pthread_rwlock_rdlock(lock), 0);
		usleep(200);
		unlock(lock);
	}
	return NULL;
}

static void starvation(pthread_rwlock_t *lock)
{
	pthread_t threads[4];
	stop = 0;
	for (int at = 0; at < 4; at++)
		threads[at] = start(read_on, lock);
	for (int round = 0; round < 50; round++) {
		IS(pthread_rwlock_wrlock(lock), 0);
		unlock(lock);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int at = 0; at < 4; at++)
		join(threads[at]);
}

/* Static initialisers, and locks that are moved while they are free. */
static pthread_rwlock_t of_readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t of_writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t zeroed;

static void statics(void)
{
	recursion(&of_readers, 0);
	recursion(&of_writers, 1);
	starvation(&of_writers);
	pthread_rwlock_t moved = of_writers;
	recursion(&moved, 1);
	moved = of_readers;
	recursion(&moved, 0);
	recursion(&zeroed, 0);
}

/* Exclusion: writers change two numbers, which readers must find equal. */
static struct {
	pthread_rwlock_t lock;
	volatile long one, other;
	long reads;
} game;

static void *play(void *number)
{
	struct timespec late;
	for (long round = 0, seed = (long)number; round < 4000; round++) {
		seed = seed * 1103515245 + 12345;
		int way = (seed >> 16) & 15;
		late = in_ms(CLOCK_MONOTONIC, 60000);
		if (way < 3) {
			IS(way == 0 ? pthread_rwlock_wrlock(&game.lock) :
			   pthread_rwlock_clockwrlock(&game.lock, CLOCK_MONOTONIC, &late), 0);
			game.one++;
			if (way == 2)
				sched_yield();
			game.other++;
		} else if (way == 3) {
			if (pthread_rwlock_trywrlock(&game.lock))
				continue;
			game.one++;
			game.other++;
		} else {
			if (way == 4 && pthread_rwlock_tryrdlock(&game.lock))
				continue;
			if (way != 4)
				IS(way == 5 ? pthread_rwlock_clockrdlock(&game.lock, CLOCK_MONOTONIC, &late)
					    : pthread_rwlock_rdlock(&game.lock), 0);
			long one = game.one;
			if (way == 6)
				sched_yield();
			IS(game.other, one);
		}
		unlock(&game.lock);
	}
	return NULL;
}

static void exclusion(int kind)
{
	pthread_t threads[6];
	game.lock = make(kind);
	for (long at = 0; at < 6; at++)
		threads[at] = start(play, (void *)(at + 1));
	for (int at = 0; at < 6; at++)
		join(threads[at]);
	IS(game.one, game.other);
	IS(pthread_rwlock_trywrlock(&game.lock), 0);
	unlock(&game.lock);
}

static void too_many(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	if (ours) {
		int readers = 0;
		while (readers <= READERS_AT_MOST && pthread_rwlock_tryrdlock(&lock) == 0)
			readers++;
		IS(readers, READERS_AT_MOST);
	} else {
		*(unsigned *)&lock = 0x80000000u - 8;
	}
	for (int at = 0; at < 4; at++)
		IS(readers[at](&lock), EAGAIN);
	IS(pthread_rwlock_trywrlock(&lock), EBUSY);
	if (!ours)
		return;
	unlock(&lock);
	IS(pthread_rwlock_rdlock(&lock), 0);
	for (int readers = 0; readers < READERS_AT_MOST; readers++)
		if (pthread_rwlock_unlock(&lock))
			failures++;
	IS(pthread_rwlock_trywrlock(&lock), 0);
	unlock(&lock);
	/* One unlock too many, from which the C library's lock does not recover. */
	IS(pthread_rwlock_unlock(&lock), EPERM);
	IS(pthread_rwlock_trywrlock(&lock), 0);
}

/* Locking doesn't change `errno`, even if it must sleep, and is not a cancellation point. */
static pthread_rwlock_t held = PTHREAD_RWLOCK_INITIALIZER;

static void *hold_a_while(void *writes)
{
	IS(writes ? pthread_rwlock_wrlock(&held) : pthread_rwlock_rdlock(&held), 0);
	settle();
	unlock(&held);
	return NULL;
}

static void error_number(void)
{
	for (int round = 0; round < 6; round++) {
		pthread_t thread = start(hold_a_while, (void *)(long)(round % 3));
		usleep(2000);
		errno = 4711;
		int code = (round % 2 ? rdlock : wrlock)(&held);
		IS(errno, 4711);
		IS(code, 0);
		unlock(&held);
		IS(errno, 4711);
		join(thread);
	}
}

static int went_on;

static void *lock_pending(void *argument)
{
	(void)argument;
	pthread_rwlock_t own = PTHREAD_RWLOCK_INITIALIZER;
	IS(pthread_rwlock_wrlock(&held), 0);
	unlock(&held);
	IS(pthread_rwlock_rdlock(&held), 0);
	unlock(&held);
	IS(pthread_rwlock_rdlock(&own), 0);
	IS(timedwrlock(&own), ETIMEDOUT);
	went_on = 1;
	pthread_testcancel();
	return NULL;
}

static void cancellation(void)
{
	IS(pthread_rwlock_rdlock(&held), 0);
	pthread_t thread = start(lock_pending, NULL);
	settle();
	pthread_cancel(thread);
	settle();
	IS(went_on, 0);
	unlock(&held);
	YES(join(thread) == PTHREAD_CANCELED);
	IS(went_on, 1);
}

/* Two processes. */
static void processes(void)
{
	pthread_rwlock_t *shared = shared_memory(sizeof *shared);
	*shared = make(SHARED);
	IS(pthread_rwlock_wrlock(shared), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(pthread_rwlock_tryrdlock(shared) != EBUSY || pthread_rwlock_rdlock(shared));
	settle();
	unlock(shared);
	IS(exit_of(child), 0);
	/* All bytes of it are the C library's, whose readers count by eight. */
	*shared = make(SHARED);
	IS(pthread_rwlock_rdlock(shared), 0);
	IS(*(unsigned *)shared, 8);
	unlock(shared);
	child = fork();
	if (child == 0)
		_exit(pthread_rwlock_rdlock(shared));
	IS(exit_of(child), 0);
	/* The child has gone with its lock. */
	IS(pthread_rwlock_trywrlock(shared), EBUSY);
	IS(pthread_rwlock_tryrdlock(shared), 0);
}

int main(int count, char **arguments)
{
	watchdog();
	ours = count == 2 && !strcmp(arguments[1], "ours");
	for (int kind = 0; kind < KINDS; kind++) {
		every_kind(kind);
		exclusion(kind);
		pthread_rwlock_t lock = make(kind);
		recursion(&lock, kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	}
	attributes();
	statics();
	too_many();
	error_number();
	cancellation();
	processes();
	return failures != 0;
}
