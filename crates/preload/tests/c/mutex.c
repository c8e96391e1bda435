/* Return values of the functions on mutexes, by kind. The argument is the offset of the recursion
 * count in `pthread_mutex_t`: 12 under the preload library, 4 in the C library. */
#include "check.h"

static pthread_mutex_t make(int type)
{
	pthread_mutex_t mutex;
	pthread_mutexattr_t attributes;
	IS(pthread_mutexattr_init(&attributes), 0);
	IS(pthread_mutexattr_settype(&attributes, type), 0);
	IS(pthread_mutex_init(&mutex, &attributes), 0);
	IS(pthread_mutexattr_destroy(&attributes), 0);
	return mutex;
}

static void *lock(void *mutex) { return (void *)(long)pthread_mutex_lock(mutex); }
static void *trylock(void *mutex) { return (void *)(long)pthread_mutex_trylock(mutex); }
static void *unlock(void *mutex) { return (void *)(long)pthread_mutex_unlock(mutex); }

static void *timedlock_wrong(void *mutex)
{
	struct timespec wrong = {.tv_sec = 0, .tv_nsec = 1000000000};
	return (void *)(long)pthread_mutex_timedlock(mutex, &wrong);
}

static void *timedlock_negative(void *mutex)
{
	struct timespec wrong = {.tv_sec = 0, .tv_nsec = -1};
	return (void *)(long)pthread_mutex_timedlock(mutex, &wrong);
}

static void *timedlock_before(void *mutex)
{
	struct timespec before = { .tv_sec = -1, .tv_nsec = 2000000000 };

	return (void *)(long)pthread_mutex_timedlock(mutex, &before);
}

static void *timedlock_past(void *mutex)
{
	struct timespec past = {.tv_sec = -5, .tv_nsec = 0};
	return (void *)(long)pthread_mutex_timedlock(mutex, &past);
}

static void *timedlock_soon(void *mutex)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 30);
	int code = pthread_mutex_timedlock(mutex, &soon);
	YES(code != ETIMEDOUT || passed(CLOCK_REALTIME, &soon));
	return (void *)(long)code;
}

static void *clocklock_soon(void *mutex)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 30);
	int code = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);
	YES(code != ETIMEDOUT || passed(CLOCK_MONOTONIC, &soon));
	return (void *)(long)code;
}

static void every_kind(int type)
{
	pthread_mutex_t mutex = make(type);
	struct timespec wrong = {.tv_sec = 1, .tv_nsec = -1}, past = {0, 0};
	IS(pthread_mutex_lock(&mutex), 0);
	IS(elsewhere(trylock, &mutex), EBUSY);
	IS(elsewhere(timedlock_wrong, &mutex), EINVAL);
	IS(elsewhere(timedlock_negative, &mutex), EINVAL);
	IS(elsewhere(timedlock_before, &mutex), ETIMEDOUT);
	IS(elsewhere(timedlock_past, &mutex), ETIMEDOUT);
	IS(elsewhere(timedlock_soon, &mutex), ETIMEDOUT);
	IS(elsewhere(clocklock_soon, &mutex), ETIMEDOUT);
	IS(pthread_mutex_destroy(&mutex), EBUSY);
	IS(pthread_mutex_unlock(&mutex), 0);
	/* A free mutex is locked whatever the deadline is. */
	IS(pthread_mutex_timedlock(&mutex, &wrong), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_timedlock(&mutex, &past), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	IS(pthread_mutex_clocklock(&mutex, 4711, &past), EINVAL);
	IS(pthread_mutex_trylock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	/* The mutex is not of a kind that has a ceiling or can be made consistent. */
	int ceiling = 0;
	IS(pthread_mutex_getprioceiling(&mutex, &ceiling), EINVAL);
	IS(pthread_mutex_setprioceiling(&mutex, 1, &ceiling), EINVAL);
	IS(pthread_mutex_consistent(&mutex), EINVAL);
	IS(pthread_mutex_destroy(&mutex), 0);
	IS(pthread_mutex_lock(&mutex), EINVAL);
	IS(pthread_mutex_init(&mutex, NULL), 0);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_destroy(&mutex), 0);
}

static void normal(int type)
{
	pthread_mutex_t mutex = make(type);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_trylock(&mutex), EBUSY);
	/* Locked again by its owner, it waits for the deadline. */
	IS(timedlock_soon(&mutex), ETIMEDOUT);
	IS(clocklock_soon(&mutex), ETIMEDOUT);
	IS(elsewhere(unlock, &mutex), 0);
	IS(pthread_mutex_trylock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_destroy(&mutex), 0);
}

static void error_check(void)
{
	pthread_mutex_t mutex = make(PTHREAD_MUTEX_ERRORCHECK);
	IS(pthread_mutex_unlock(&mutex), EPERM);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_lock(&mutex), EDEADLK);
	IS(pthread_mutex_trylock(&mutex), EBUSY);
	IS(timedlock_wrong(&mutex), EDEADLK);
	IS(timedlock_soon(&mutex), EDEADLK);
	IS(clocklock_soon(&mutex), EDEADLK);
	IS(elsewhere(unlock, &mutex), EPERM);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), EPERM);
	IS(elsewhere(lock, &mutex), 0);
	IS(pthread_mutex_unlock(&mutex), EPERM);
	IS(pthread_mutex_trylock(&mutex), EBUSY);
}

static void recursive(int count_at)
{
	pthread_mutex_t mutex = make(PTHREAD_MUTEX_RECURSIVE);
	IS(pthread_mutex_unlock(&mutex), EPERM);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_trylock(&mutex), 0);
	IS(timedlock_wrong(&mutex), 0);
	IS(clocklock_soon(&mutex), 0);
	IS(elsewhere(unlock, &mutex), EPERM);
	for (int left = 4; left > 0; left--) {
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(elsewhere(trylock, &mutex), EBUSY);
	}
	unsigned *count = (unsigned *)((char *)&mutex + count_at), before = *count;
	*count = ~0u;
	IS(pthread_mutex_lock(&mutex), EAGAIN);
	IS(pthread_mutex_trylock(&mutex), EAGAIN);
	IS(timedlock_soon(&mutex), EAGAIN);
	*count = before;
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), EPERM);
	IS(pthread_mutex_destroy(&mutex), 0);
}

/* Robust, priority and shared mutexes are the C library's and keep their behaviour. */
static void *die_with(void *mutex)
{
	IS(pthread_mutex_lock(mutex), 0);
	return NULL;
}

static void foreign(void)
{
	pthread_mutex_t mutex;
	pthread_mutexattr_t attributes;
	IS(pthread_mutexattr_init(&attributes), 0);
	IS(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
	IS(pthread_mutex_init(&mutex, &attributes), 0);
	elsewhere(die_with, &mutex);
	IS(pthread_mutex_lock(&mutex), EOWNERDEAD);
	IS(pthread_mutex_consistent(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	elsewhere(die_with, &mutex);
	IS(pthread_mutex_trylock(&mutex), EOWNERDEAD);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
	IS(pthread_mutex_destroy(&mutex), 0);

	IS(pthread_mutexattr_init(&attributes), 0);
	IS(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
	IS(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK), 0);
	IS(pthread_mutex_init(&mutex, &attributes), 0);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_lock(&mutex), EDEADLK);
	IS(elsewhere(trylock, &mutex), EBUSY);
	IS(elsewhere(timedlock_soon, &mutex), ETIMEDOUT);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_destroy(&mutex), 0);

	IS(pthread_mutexattr_init(&attributes), 0);
	IS(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	pthread_mutex_t *shared = shared_memory(sizeof *shared);
	IS(pthread_mutex_init(shared, &attributes), 0);
	IS(pthread_mutex_lock(shared), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(pthread_mutex_trylock(shared));
	IS(exit_of(child), EBUSY);
	IS(pthread_mutex_unlock(shared), 0);
	child = fork();
	if (child == 0)
		_exit(pthread_mutex_lock(shared) || pthread_mutex_unlock(shared));
	IS(exit_of(child), 0);
}

/* The owner of a mutex is at offset 8, for debuggers and for programs that read it, for every kind
 * and however it was taken. */
enum { OWNER = 8, KINDS = 7 };

static pthread_mutex_t of_kind(int kind)
{
	int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK,
		       PTHREAD_MUTEX_RECURSIVE};
	pthread_mutex_t mutex;
	pthread_mutexattr_t attributes;
	if (kind < 4)
		return make(types[kind]);
	IS(pthread_mutexattr_init(&attributes), 0);
	if (kind == 4)
		IS(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
	if (kind == 5)
		IS(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
	if (kind == 6)
		IS(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_mutex_init(&mutex, &attributes), 0);
	return mutex;
}

static int lock_somehow(pthread_mutex_t *mutex, int how)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 60000);
	switch (how) {
	case 0:
		return pthread_mutex_lock(mutex);
	case 1:
		return pthread_mutex_trylock(mutex);
	case 2:
		return pthread_mutex_timedlock(mutex, &late);
	default:
		return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &late);
	}
}

static int held;

static void *hold_a_moment(void *argument)
{
	pthread_mutex_t *mutex = argument;
	IS(pthread_mutex_lock(mutex), 0);
	__atomic_store_n(&held, 1, __ATOMIC_RELAXED);
	settle();
	IS(*(volatile int *)((char *)mutex + OWNER), gettid());
	IS(pthread_mutex_unlock(mutex), 0);
	return NULL;
}

static void owner(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		pthread_mutex_t mutex = of_kind(kind);
		volatile int *holder = (int *)((char *)&mutex + OWNER);
		IS(*holder, 0);
		for (int how = 0; how < 4; how++) {
			IS(lock_somehow(&mutex, how), 0);
			IS(*holder, gettid());
			IS(pthread_mutex_unlock(&mutex), 0);
			IS(*holder, 0);
			/* The mutex was taken after a wait. */
			__atomic_store_n(&held, 0, __ATOMIC_RELAXED);
			pthread_t thread = start(hold_a_moment, &mutex);
			while (!__atomic_load_n(&held, __ATOMIC_RELAXED))
				sched_yield();
			IS(lock_somehow(&mutex, how == 1 ? 0 : how), 0);
			IS(*holder, gettid());
			join(thread);
			IS(pthread_mutex_unlock(&mutex), 0);
		}
		pid_t child = fork();
		if (child == 0) {
			pthread_mutex_lock(&mutex);
			_exit(*holder != gettid());
		}
		IS(exit_of(child), 0);
	}
}

/* Locking doesn't change `errno`, even if it must sleep. */
static void *hold_a_while(void *mutex)
{
	IS(pthread_mutex_lock(mutex), 0);
	settle();
	IS(pthread_mutex_unlock(mutex), 0);
	return NULL;
}

static void error_number(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	for (int round = 0; round < 5; round++) {
		pthread_t thread = start(hold_a_while, &mutex);
		usleep(2000);
		errno = 4711;
		int code = pthread_mutex_lock(&mutex);
		IS(errno, 4711);
		IS(code, 0);
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(errno, 4711);
		join(thread);
	}
}

int main(int count, char **arguments)
{
	watchdog();
	if (count != 2)
		return 98;
	int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ERRORCHECK,
		       PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ADAPTIVE_NP};
	for (unsigned at = 0; at < sizeof types / sizeof *types; at++)
		every_kind(types[at]);
	normal(PTHREAD_MUTEX_NORMAL);
	normal(PTHREAD_MUTEX_ADAPTIVE_NP);
	error_check();
	recursive(atoi(arguments[1]));
	foreign();
	owner();
	error_number();
	return failures != 0;
}
