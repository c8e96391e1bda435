/* Spinlocks: exclusion between threads and between processes, and what the functions return. */
#include "check.h"

static struct shared {
	pthread_spinlock_t spin;
	volatile long count;
} *shared;

static void *count(void *argument)
{
	(void)argument;
	for (int round = 0; round < 20000; round++) {
		pthread_spin_lock(&shared->spin);
		shared->count++;
		pthread_spin_unlock(&shared->spin);
	}
	return NULL;
}

int main(void)
{
	watchdog();
	shared = shared_memory(sizeof *shared);
	IS(pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_spin_lock(&shared->spin), 0);
	IS(pthread_spin_trylock(&shared->spin), EBUSY);
	IS(pthread_spin_unlock(&shared->spin), 0);
	IS(pthread_spin_trylock(&shared->spin), 0);
	IS(pthread_spin_unlock(&shared->spin), 0);
	pthread_t threads[4];
	for (int at = 0; at < 4; at++)
		threads[at] = start(count, NULL);
	pid_t child = fork();
	if (child == 0) {
		count(NULL);
		_exit(0);
	}
	for (int at = 0; at < 4; at++)
		join(threads[at]);
	IS(exit_of(child), 0);
	IS(shared->count, 5 * 20000);
	IS(pthread_spin_destroy(&shared->spin), 0);
	return failures != 0;
}
