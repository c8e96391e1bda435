/* A mutex in shared memory that is not flagged as shared, with a waiter of another process; and one
 * whose waiter is the parent's, in a child of fork that has a copy of it. */
#include "check.h"
#include <stdint.h>

static void *lock_and_unlock(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

/* Until somebody sleeps there: byte 0 of our mutex has the bit. */
static void await_sleeper(pthread_mutex_t *mutex)
{
	while (!(*(volatile uint8_t *)mutex & 2))
		usleep(1000);
}

int main(void)
{
	watchdog();
	pthread_mutex_t *mutex = shared_memory(sizeof *mutex);
	*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(mutex);
	pid_t child = fork();
	if (child == 0) {
		lock_and_unlock(mutex);
		_exit(0);
	}
	await_sleeper(mutex);
	pthread_mutex_unlock(mutex);
	IS(exit_of(child), 0);

	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&own);
	pthread_t thread = start(lock_and_unlock, &own);
	await_sleeper(&own);
	child = fork();
	if (child == 0) {
		pthread_mutex_unlock(&own);
		lock_and_unlock(&own);
		_exit(0);
	}
	IS(exit_of(child), 0);
	pthread_mutex_unlock(&own);
	join(thread);
	return failures != 0;
}
