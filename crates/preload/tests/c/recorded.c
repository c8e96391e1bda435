/* Known numbers of acquisitions and known waits, for a recording to find again. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *count(void *argument)
{
	(void)argument;
	for (int round = 0; round < 998; round++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_lock(&inner);
		pthread_mutex_unlock(&inner);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

/* One thread waits for the mutex for 200 ms, once it has got so far; then another one waits for the
 * condition for 300 ms. */
static int arrived;

static void *wait_for_both(void *argument)
{
	(void)argument;
	__atomic_store_n(&arrived, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&inner);
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void known_waits(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&inner);
	pthread_mutex_unlock(&inner);
	__atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
	pthread_t thread = start(wait_for_both, NULL);
	while (!__atomic_load_n(&arrived, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(200000);
	struct timespec soon = in_ms(CLOCK_REALTIME, 300);
	while (pthread_cond_timedwait(&cond, &mutex, &soon) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&mutex);
	join(thread);
}

int main(void)
{
	watchdog();
	pthread_t threads[4];
	for (int at = 0; at < 4; at++)
		threads[at] = start(count, NULL);
	for (int at = 0; at < 4; at++)
		join(threads[at]);
	known_waits();
	pid_t child = fork();
	if (child == 0) {
		known_waits();
		_exit(failures != 0);
	}
	IS(exit_of(child), 0);
	for (int more = 0; more < 4; more++)
		wait_for_both(NULL);
	return failures != 0;
}
