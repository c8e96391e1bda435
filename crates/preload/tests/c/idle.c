/* Threads that wait for long, for every kind of object, alone and many for one: none of them wakes
 * up. */
#include "check.h"
#include <sys/resource.h>

enum { EACH = 40, KINDS = 13 };

static pthread_mutex_t mutexes[7][EACH];
static pthread_rwlock_t rwlocks[4][EACH];
static pthread_cond_t conds[2];
static pthread_mutex_t with[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static const int types[7] = {
	PTHREAD_MUTEX_NORMAL,	  PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
	PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_NORMAL,   PTHREAD_MUTEX_NORMAL,
	PTHREAD_MUTEX_RECURSIVE,
};
static int done[2];

/* Kinds 0 to 6 are mutexes: the fifth is one for all, the last two have deadlines. Kinds 7 to 10
 * are readers-writer locks: read, written, one for all, with a deadline. Then come condition
 * variables. */
static void *wait_for(void *number)
{
	int kind = (long)number / EACH, place = (long)number % EACH;
	struct timespec far = in_ms(CLOCK_REALTIME, 3600 * 1000);
	if (kind < 7) {
		pthread_mutex_t *mutex = &mutexes[kind][kind == 4 ? 0 : place];
		IS(kind < 5 ? pthread_mutex_lock(mutex) : pthread_mutex_timedlock(mutex, &far), 0);
		IS(pthread_mutex_unlock(mutex), 0);
	} else if (kind < 11) {
		pthread_rwlock_t *lock = &rwlocks[kind - 7][kind == 9 ? 0 : place];
		int write = kind == 8 || (kind == 9 && place % 2);
		IS(write	? pthread_rwlock_wrlock(lock) :
		   kind == 10	? pthread_rwlock_timedrdlock(lock, &far) :
				  pthread_rwlock_rdlock(lock), 0);
		IS(pthread_rwlock_unlock(lock), 0);
	} else {
		int timed = kind - 11;
		pthread_mutex_lock(&with[timed]);
		while (!done[timed])
			IS(timed ? pthread_cond_timedwait(&conds[1], &with[1], &far) :
				   pthread_cond_wait(&conds[0], &with[0]), 0);
		pthread_mutex_unlock(&with[timed]);
	}
	return NULL;
}

static long switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

int main(void)
{
	static pthread_t threads[KINDS * EACH];
	pthread_attr_t small;
	watchdog();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int kind = 0; kind < 7; kind++) {
		pthread_mutexattr_t type;
		pthread_mutexattr_init(&type);
		pthread_mutexattr_settype(&type, types[kind]);
		for (int place = 0; place < EACH; place++) {
			IS(pthread_mutex_init(&mutexes[kind][place], &type), 0);
			IS(pthread_mutex_lock(&mutexes[kind][place]), 0);
		}
	}
	for (int kind = 0; kind < 4; kind++)
		for (int place = 0; place < EACH; place++)
			IS(pthread_rwlock_wrlock(&rwlocks[kind][place]), 0);
	for (long number = 0; number < KINDS * EACH; number++)
		IS(pthread_create(threads + number, &small, wait_for, (void *)number), 0);
	/* Naps of one and a half second, and all shorter ones, are seen. Whatever else happens on the
	 * machine, a thread that looks up does so in each round, until there are many. */
	long last = switches(), now = last;
	int quiet = 0;
	for (int round = 0; round < 10 && !quiet; round++) {
		usleep(2500000);
		now = switches();
		quiet = now - last < EACH / 4;
		last = now;
	}
	YES(quiet);
	for (int kind = 0; kind < 7; kind++)
		for (int place = 0; place < EACH; place++)
			IS(pthread_mutex_unlock(&mutexes[kind][place]), 0);
	for (int kind = 0; kind < 4; kind++)
		for (int place = 0; place < EACH; place++)
			IS(pthread_rwlock_unlock(&rwlocks[kind][place]), 0);
	for (int timed = 0; timed < 2; timed++) {
		pthread_mutex_lock(&with[timed]);
		done[timed] = 1;
		pthread_mutex_unlock(&with[timed]);
		pthread_cond_broadcast(&conds[timed]);
	}
	for (long number = 0; number < KINDS * EACH; number++)
		join(threads[number]);
	return failures != 0;
}
