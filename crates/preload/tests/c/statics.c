/* Static initialisers of every kind, and mutual exclusion under them. */
#include "check.h"

static pthread_mutex_t mutexes[] = {
	PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
	PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
	PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};
static pthread_mutex_t zeroed[2];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counters[4];

static void *count(void *argument)
{
	(void)argument;
	for (int round = 0; round < 20000; round++)
		for (int kind = 0; kind < 4; kind++) {
			IS(pthread_mutex_lock(&mutexes[kind]), 0);
			counters[kind]++;
			IS(pthread_mutex_unlock(&mutexes[kind]), 0);
		}
	return NULL;
}

int main(void)
{
	watchdog();
	pthread_t threads[6];
	for (int at = 0; at < 6; at++)
		threads[at] = start(count, NULL);
	for (int at = 0; at < 6; at++)
		join(threads[at]);
	for (int kind = 0; kind < 4; kind++)
		IS(counters[kind], 6 * 20000);

	IS(pthread_mutex_lock(&mutexes[1]), 0);
	IS(pthread_mutex_lock(&mutexes[1]), 0);
	IS(pthread_mutex_lock(&mutexes[2]), 0);
	IS(pthread_mutex_lock(&mutexes[2]), EDEADLK);
	IS(pthread_mutex_lock(&zeroed[0]), 0);
	IS(pthread_mutex_trylock(&zeroed[0]), EBUSY);
	IS(pthread_mutex_unlock(&zeroed[0]), 0);
	/* An unlocked mutex may be moved. */
	memcpy(&zeroed[1], &zeroed[0], sizeof zeroed[0]);
	IS(pthread_mutex_trylock(&zeroed[1]), 0);

	struct timespec soon = in_ms(CLOCK_REALTIME, 10);
	IS(pthread_cond_timedwait(&cond, &zeroed[1], &soon), ETIMEDOUT);
	YES(passed(CLOCK_REALTIME, &soon));
	IS(pthread_cond_signal(&cond), 0);
	IS(pthread_cond_broadcast(&cond), 0);
	IS(pthread_cond_destroy(&cond), 0);
	return failures != 0;
}
