/* Critical sections: as many end as have begun, whatever was called (SECTION-6), and a thread that
 * sleeps is in none (SECTION-3). Under a library that pretends to heed them, which is asked for the
 * number of sections of the thread; without one, only what the functions return is checked. */
#include "check.h"
#include <dlfcn.h>

static unsigned (*sections)(void);

/* That the thread is in `depth` sections, and that this is what was told. */
#define DEEP(depth)                                                                                \
	do {                                                                                       \
		unsigned depth_ = (depth);                                                         \
		if (sections)                                                                      \
			IS(sections(), depth_ | (depth_ ? 1u << 16 : 0));                          \
	} while (0)

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held, seen;

/* A kind of mutex, and how many sections it tells. */
static const struct kind {
	const char *name;
	int type, robust, protocol, shared;
	unsigned told;
} kinds[] = {
	{ "normal", PTHREAD_MUTEX_NORMAL, 0, 0, 0, 1 },
	{ "adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0, 1 },
	{ "recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0, 1 },
	{ "error-checking", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0, 1 },
	{ "robust", PTHREAD_MUTEX_NORMAL, 1, 0, 0, 0 },
	{ "inheriting", PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_INHERIT, 0, 0 },
	{ "shared", PTHREAD_MUTEX_NORMAL, 0, 0, 1, 0 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void make(pthread_mutex_t *mutex, const struct kind *kind)
{
	pthread_mutexattr_t how;
	IS(pthread_mutexattr_init(&how), 0);
	IS(pthread_mutexattr_settype(&how, kind->type), 0);
	IS(pthread_mutexattr_setrobust(&how, kind->robust), 0);
	IS(pthread_mutexattr_setprotocol(&how, kind->protocol), 0);
	IS(pthread_mutexattr_setpshared(&how, kind->shared), 0);
	IS(pthread_mutex_init(mutex, &how), 0);
	IS(pthread_mutexattr_destroy(&how), 0);
}

/* Late enough that a thread which waits until then sleeps, on a machine under load, too. */
static struct timespec soon(void)
{
	return in_ms(CLOCK_REALTIME, 100);
}

/* Each way to take a free mutex, at a depth. */
static void take_free(pthread_mutex_t *mutex, const struct kind *kind, unsigned depth)
{
	struct timespec until = soon(), monotonic = in_ms(CLOCK_MONOTONIC, 20);
	for (int way = 0; way < 4; way++) {
		DEEP(depth);
		IS(way == 0   ? pthread_mutex_lock(mutex)
		   : way == 1 ? pthread_mutex_trylock(mutex)
		   : way == 2 ? pthread_mutex_timedlock(mutex, &until)
			      : pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &monotonic),
		   0);
		DEEP(depth + kind->told);
		if (kind->type == PTHREAD_MUTEX_RECURSIVE) {
			IS(pthread_mutex_lock(mutex), 0);
			IS(pthread_mutex_trylock(mutex), 0);
			DEEP(depth + kind->told);
			IS(pthread_mutex_unlock(mutex), 0);
			IS(pthread_mutex_unlock(mutex), 0);
			DEEP(depth + kind->told);
		}
		if (kind->type == PTHREAD_MUTEX_ERRORCHECK) {
			IS(pthread_mutex_lock(mutex), EDEADLK);
			IS(pthread_mutex_trylock(mutex), EBUSY);
			DEEP(depth + kind->told);
		}
		IS(pthread_mutex_unlock(mutex), 0);
		DEEP(depth);
	}
	if (kind->type == PTHREAD_MUTEX_ERRORCHECK) {
		IS(pthread_mutex_unlock(mutex), EPERM);
		DEEP(depth);
	}
}

/* Holds a mutex until the other thread has tried what it does not get, and is about to wait. */
static void *hold(void *mutex)
{
	IS(pthread_mutex_lock(mutex), 0);
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&seen);
	settle();
	IS(pthread_mutex_unlock(mutex), 0);
	DEEP(0);
	return NULL;
}

static void take_held(pthread_mutex_t *mutex, const struct kind *kind)
{
	struct timespec wrong = { .tv_nsec = -1 };
	pthread_t holder = start(hold, mutex);
	pthread_barrier_wait(&held);
	IS(pthread_mutex_lock(&outer), 0);
	DEEP(1);
	IS(pthread_mutex_trylock(mutex), EBUSY);
	DEEP(1);
	if (!kind->protocol) {
		IS(pthread_mutex_timedlock(mutex, &wrong), EINVAL);
		DEEP(1);
	}
	struct timespec until = soon();
	IS(pthread_mutex_timedlock(mutex, &until), ETIMEDOUT);
	/* We cannot see whether the C library sleeps. */
	DEEP(!kind->told);
	IS(pthread_mutex_unlock(&outer), 0);
	DEEP(0);
	pthread_barrier_wait(&seen);
	IS(pthread_mutex_lock(mutex), 0);
	DEEP(kind->told);
	IS(pthread_mutex_unlock(mutex), 0);
	DEEP(0);
	join(holder);
}

static pthread_cond_t private_cond = PTHREAD_COND_INITIALIZER, shared_cond;
static volatile int waiting, released;

struct pair {
	pthread_cond_t *cond;
	pthread_mutex_t *mutex;
	unsigned told;
};

static void *wait_for(void *argument)
{
	struct pair *pair = argument;
	IS(pthread_mutex_lock(&outer), 0);
	IS(pthread_mutex_unlock(&outer), 0);
	IS(pthread_mutex_lock(pair->mutex), 0);
	waiting++;
	while (!released)
		IS(pthread_cond_wait(pair->cond, pair->mutex), 0);
	DEEP(pair->told);
	IS(pthread_mutex_unlock(pair->mutex), 0);
	DEEP(0);
	return NULL;
}

/* A wait that ends by its deadline, one by a signal, and several by a broadcast. */
static void wait_with(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct kind *kind)
{
	IS(pthread_mutex_lock(&outer), 0);
	IS(pthread_mutex_lock(mutex), 0);
	DEEP(1 + kind->told);
	struct timespec until = soon();
	int code;
	while ((code = pthread_cond_timedwait(cond, mutex, &until)) == 0)
		;
	IS(code, ETIMEDOUT);
	/* The sleep has ended the section of the outer mutex. */
	DEEP(kind->told);
	IS(pthread_mutex_unlock(mutex), 0);
	DEEP(0);
	IS(pthread_mutex_unlock(&outer), 0);
	DEEP(0);

	struct pair pair = { cond, mutex, kind->told };
	pthread_t threads[4];
	waiting = released = 0;
	for (int at = 0; at < 4; at++)
		threads[at] = start(wait_for, &pair);
	for (int all = 0; !all;) {
		IS(pthread_mutex_lock(mutex), 0);
		all = waiting == 4;
		IS(pthread_mutex_unlock(mutex), 0);
		usleep(1000);
	}
	IS(pthread_mutex_lock(mutex), 0);
	released = 1;
	IS(pthread_cond_signal(cond), 0);
	IS(pthread_cond_broadcast(cond), 0);
	DEEP(kind->told);
	IS(pthread_mutex_unlock(mutex), 0);
	DEEP(0);
	for (int at = 0; at < 4; at++)
		join(threads[at]);
}

static void *hold_to_write(void *lock)
{
	IS(pthread_rwlock_wrlock(lock), 0);
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&seen);
	settle();
	IS(pthread_rwlock_unlock(lock), 0);
	DEEP(0);
	return NULL;
}

static void readers_and_writers(int kind, int shared)
{
	unsigned told = !shared;
	struct timespec until = soon(), monotonic = in_ms(CLOCK_MONOTONIC, 20);
	pthread_rwlockattr_t how;
	pthread_rwlock_t lock;
	IS(pthread_rwlockattr_init(&how), 0);
	IS(pthread_rwlockattr_setkind_np(&how, kind), 0);
	IS(pthread_rwlockattr_setpshared(&how, shared), 0);
	IS(pthread_rwlock_init(&lock, &how), 0);
	for (unsigned depth = 0; depth < 2; depth++) {
		if (depth)
			IS(pthread_mutex_lock(&outer), 0);
		for (int way = 0; way < 4; way++) {
			IS(way == 0   ? pthread_rwlock_wrlock(&lock)
			   : way == 1 ? pthread_rwlock_trywrlock(&lock)
			   : way == 2 ? pthread_rwlock_timedwrlock(&lock, &until)
				      : pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &monotonic),
			   0);
			DEEP(depth + told);
			IS(pthread_rwlock_wrlock(&lock), EDEADLK);
			IS(pthread_rwlock_trywrlock(&lock), EBUSY);
			DEEP(depth + told);
			IS(pthread_rwlock_unlock(&lock), 0);
			DEEP(depth);
			IS(way == 0   ? pthread_rwlock_rdlock(&lock)
			   : way == 1 ? pthread_rwlock_tryrdlock(&lock)
			   : way == 2 ? pthread_rwlock_timedrdlock(&lock, &until)
				      : pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &monotonic),
			   0);
			DEEP(depth);
			IS(pthread_rwlock_unlock(&lock), 0);
			DEEP(depth);
		}
		if (depth)
			IS(pthread_mutex_unlock(&outer), 0);
	}
	pthread_t holder = start(hold_to_write, &lock);
	pthread_barrier_wait(&held);
	IS(pthread_mutex_lock(&outer), 0);
	IS(pthread_rwlock_trywrlock(&lock), EBUSY);
	IS(pthread_rwlock_tryrdlock(&lock), EBUSY);
	DEEP(1);
	until = soon();
	IS(pthread_rwlock_timedwrlock(&lock, &until), ETIMEDOUT);
	DEEP(shared);
	IS(pthread_mutex_unlock(&outer), 0);
	DEEP(0);
	pthread_barrier_wait(&seen);
	IS(pthread_rwlock_wrlock(&lock), 0);
	DEEP(told);
	IS(pthread_rwlock_unlock(&lock), 0);
	DEEP(0);
	join(holder);
	IS(pthread_rwlock_destroy(&lock), 0);
}

static pthread_spinlock_t spin;

static void *hold_spinning(void *unused)
{
	(void)unused;
	IS(pthread_spin_lock(&spin), 0);
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&seen);
	settle();
	IS(pthread_spin_unlock(&spin), 0);
	DEEP(0);
	return NULL;
}

static void spinlocks(void)
{
	IS(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	for (unsigned depth = 0; depth < 2; depth++) {
		if (depth)
			IS(pthread_mutex_lock(&outer), 0);
		IS(pthread_spin_lock(&spin), 0);
		DEEP(depth + 1);
		IS(pthread_spin_trylock(&spin), EBUSY);
		DEEP(depth + 1);
		IS(pthread_spin_unlock(&spin), 0);
		DEEP(depth);
		IS(pthread_spin_trylock(&spin), 0);
		DEEP(depth + 1);
		IS(pthread_spin_unlock(&spin), 0);
		DEEP(depth);
		if (depth)
			IS(pthread_mutex_unlock(&outer), 0);
	}
	pthread_t holder = start(hold_spinning, NULL);
	pthread_barrier_wait(&held);
	pthread_barrier_wait(&seen);
	IS(pthread_spin_lock(&spin), 0);
	DEEP(1);
	IS(pthread_spin_unlock(&spin), 0);
	DEEP(0);
	join(holder);
}

static void *unlock_outer(void *unused)
{
	(void)unused;
	IS(pthread_mutex_unlock(&outer), 0);
	DEEP(0);
	return NULL;
}

int main(int count, char **arguments)
{
	watchdog();
	*(void **)&sections = dlsym(RTLD_DEFAULT, "antiphon_pretended_sections");
	if (count > 1 && !strcmp(arguments[1], "told"))
		YES(sections);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&seen, NULL, 2);
	/* Before there is a second thread, and beyond that. */
	DEEP(0);
	IS(pthread_mutex_lock(&outer), 0);
	DEEP(1);
	pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
	take_free(&inner, &kinds[0], 1);
	/* Unlocked by another thread: the section ends with the next sleep. */
	elsewhere(unlock_outer, NULL);
	DEEP(1);
	pthread_condattr_t how;
	IS(pthread_condattr_init(&how), 0);
	IS(pthread_condattr_setpshared(&how, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_cond_init(&shared_cond, &how), 0);
	struct timespec until = soon();
	IS(pthread_mutex_lock(&inner), 0);
	while (pthread_cond_timedwait(&private_cond, &inner, &until) != ETIMEDOUT)
		;
	DEEP(1);
	IS(pthread_mutex_unlock(&inner), 0);
	DEEP(0);

	for (int at = 0; at < KINDS; at++) {
		pthread_mutex_t mutex;
		int before = failures;
		make(&mutex, &kinds[at]);
		take_free(&mutex, &kinds[at], 0);
		IS(pthread_mutex_lock(&outer), 0);
		take_free(&mutex, &kinds[at], 1);
		IS(pthread_mutex_unlock(&outer), 0);
		DEEP(0);
		take_held(&mutex, &kinds[at]);
		wait_with(&private_cond, &mutex, &kinds[at]);
		wait_with(&shared_cond, &mutex, &kinds[at]);
		IS(pthread_mutex_destroy(&mutex), 0);
		if (failures != before)
			fprintf(stderr, "with a mutex of the kind %s\n", kinds[at].name);
	}
	for (int kind = 0; kind < 3; kind++)
		readers_and_writers(kind, PTHREAD_PROCESS_PRIVATE);
	readers_and_writers(0, PTHREAD_PROCESS_SHARED);
	spinlocks();
	return failures != 0;
}
