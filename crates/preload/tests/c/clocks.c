/* Deadlines are times of the clocks that the program sees: each function that takes one waits as
 * long as clock_gettime says. Arguments: the milliseconds of a wait by that clock; its least and
 * its most milliseconds by the kernel's; which function, otherwise all. */
#include "check.h"

#include <sys/syscall.h>

static long long wait_ms, least_ms, most_ms;

static long long now_ms(void)
{
	struct timespec time;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static struct timespec after_ms(clockid_t clock, long long ms)
{
	struct timespec time;
	IS(clock_gettime(clock, &time), 0);
	long long ns = time.tv_nsec + ms % 1000 * 1000000;
	time.tv_sec += ms / 1000 + ns / 1000000000;
	time.tv_nsec = ns % 1000000000;
	return time;
}

struct objects {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t realtime, monotonic, shared;
};

/* Free mutexes for the condition variables; the locks of `held` are held. */
static struct objects held;
static pthread_mutex_t mutexes[8];

enum { CONDS = 5, FUNCTIONS = 13 };

static int wait_for(int function, struct timespec until, pthread_mutex_t *mutex)
{
	switch (function) {
	case 0:
		return pthread_cond_timedwait(&held.realtime, mutex, &until);
	case 1:
		return pthread_cond_timedwait(&held.monotonic, mutex, &until);
	case 2:
		return pthread_cond_timedwait(&held.shared, mutex, &until);
	case 3:
		return pthread_cond_clockwait(&held.realtime, mutex, CLOCK_MONOTONIC, &until);
	case 4:
		return pthread_cond_clockwait(&held.monotonic, mutex, CLOCK_REALTIME, &until);
	case 5:
		return pthread_mutex_timedlock(&held.mutex, &until);
	case 6:
		return pthread_mutex_clocklock(&held.mutex, CLOCK_MONOTONIC, &until);
	case 7:
		return pthread_mutex_clocklock(&held.mutex, CLOCK_REALTIME, &until);
	case 8:
		return pthread_rwlock_timedrdlock(&held.rwlock, &until);
	case 9:
		return pthread_rwlock_timedwrlock(&held.rwlock, &until);
	case 10:
		return pthread_rwlock_clockrdlock(&held.rwlock, CLOCK_MONOTONIC, &until);
	case 11:
		return pthread_rwlock_clockwrlock(&held.rwlock, CLOCK_MONOTONIC, &until);
	default:
		return pthread_rwlock_clockwrlock(&held.rwlock, CLOCK_REALTIME, &until);
	}
}

static int is_monotonic(int function)
{
	return function == 1 || function == 3 || function == 6 || function == 10 || function == 11;
}

static void *waits(void *argument)
{
	int function = (int)(long)argument, code;
	pthread_mutex_t *mutex = &mutexes[function % CONDS];
	clockid_t clock = is_monotonic(function) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	if (function < CONDS)
		IS(pthread_mutex_lock(mutex), 0);
	long long since = now_ms();
	struct timespec until = after_ms(clock, wait_ms);
	/* A wait may end spuriously. */
	do
		code = wait_for(function, until, mutex);
	while (code == 0 && function < CONDS);
	long long took = now_ms() - since;
	if (code != ETIMEDOUT || took < least_ms || took > most_ms) {
		fprintf(stderr, "function %d: %d after %lld ms\n", function, code, took);
		failures++;
	}
	if (function < CONDS)
		IS(pthread_mutex_unlock(mutex), 0);
	return NULL;
}

static int may_go;

/* Waits for a lock that is released, and a condition that is notified, before the deadline. */
static void *gets(void *argument)
{
	(void)argument;
	struct timespec until = after_ms(CLOCK_REALTIME, 100000000);
	IS(pthread_mutex_timedlock(&held.mutex, &until), 0);
	while (!may_go)
		IS(pthread_cond_timedwait(&held.realtime, &held.mutex, &until), 0);
	IS(pthread_mutex_unlock(&held.mutex), 0);
	return NULL;
}

int main(int count, char **arguments)
{
	if (count < 4)
		return 2;
	watchdog();
	wait_ms = atoll(arguments[1]);
	least_ms = atoll(arguments[2]);
	most_ms = atoll(arguments[3]);
	pthread_condattr_t attributes;
	IS(pthread_condattr_init(&attributes), 0);
	IS(pthread_cond_init(&held.realtime, NULL), 0);
	IS(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
	IS(pthread_cond_init(&held.monotonic, &attributes), 0);
	IS(pthread_condattr_setclock(&attributes, CLOCK_REALTIME), 0);
	IS(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_cond_init(&held.shared, &attributes), 0);
	IS(pthread_rwlock_init(&held.rwlock, NULL), 0);
	IS(pthread_mutex_init(&held.mutex, NULL), 0);
	for (int i = 0; i < CONDS; i++)
		IS(pthread_mutex_init(&mutexes[i], NULL), 0);
	IS(pthread_mutex_lock(&held.mutex), 0);
	IS(pthread_rwlock_wrlock(&held.rwlock), 0);
	pthread_t threads[FUNCTIONS], getter;
	if (count > 4) {
		waits((void *)atol(arguments[4]));
		return failures != 0;
	}
	for (long i = 0; i < FUNCTIONS; i++)
		IS(pthread_create(&threads[i], NULL, waits, (void *)i), 0);
	for (int i = 0; i < FUNCTIONS; i++)
		IS(pthread_join(threads[i], NULL), 0);
	IS(pthread_create(&getter, NULL, gets, NULL), 0);
	IS(pthread_mutex_unlock(&held.mutex), 0);
	IS(pthread_mutex_lock(&held.mutex), 0);
	may_go = 1;
	IS(pthread_mutex_unlock(&held.mutex), 0);
	IS(pthread_cond_signal(&held.realtime), 0);
	IS(pthread_join(getter, NULL), 0);
	return failures != 0;
}
