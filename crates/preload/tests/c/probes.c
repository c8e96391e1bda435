/* A mutex is taken when it is free, a hundred times; then without success, with a deadline; then
 * after a wait. */
#include "check.h"

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int had;

static void *hold(void *unused)
{
	pthread_mutex_lock(&mutex);
	__atomic_store_n(&had, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&had, __ATOMIC_ACQUIRE) == 1)
		usleep(1000);
	/* A waiter has come by now, or will find it free. */
	usleep(100000);
	pthread_mutex_unlock(&mutex);
	return unused;
}

__attribute__((noinline, noipa)) void ready(void)
{
	__asm__ volatile("");
}

int main(void)
{
	watchdog();
	for (int round = 0; round < 100; round++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	pthread_t thread = start(hold, NULL);
	while (!__atomic_load_n(&had, __ATOMIC_ACQUIRE))
		usleep(1000);
	ready();
	struct timespec soon = in_ms(CLOCK_REALTIME, 20);
	IS(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
	__atomic_store_n(&had, 2, __ATOMIC_RELEASE);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	join(thread);
	return failures != 0;
}
