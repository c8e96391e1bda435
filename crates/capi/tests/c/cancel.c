/* No function is a cancellation point: a cancelled thread goes on waiting, and ends later. */
#include "check.h"

#include <antiphon.h>

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_cond_t changed = ANTIPHON_COND_INIT;
static int waiting, ready, cleaned, returned;

static void unlock(void *unused)
{
	(void)unused;
	cleaned = 1;
	antiphon_mutex_unlock(&mutex);
}

static void *wait_cancelled(void *unused)
{
	(void)unused;
	antiphon_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, NULL);
	waiting = 1;
	while (!ready)
		antiphon_cond_wait(&changed, &mutex);
	returned = 1;
	pthread_testcancel();
	pthread_cleanup_pop(1);
	return NULL;
}

static void *lock_cancelled(void *unused)
{
	(void)unused;
	waiting = 1;
	antiphon_mutex_lock(&mutex);
	returned = 1;
	antiphon_mutex_unlock(&mutex);
	pthread_testcancel();
	return NULL;
}

int main(void)
{
	pthread_t waiter;
	watchdog();
	waiter = start(wait_cancelled, NULL);
	for (;;) {
		antiphon_mutex_lock(&mutex);
		if (waiting)
			break;
		antiphon_mutex_unlock(&mutex);
		usleep(1000);
	}
	antiphon_mutex_unlock(&mutex);
	IS(pthread_cancel(waiter), 0);
	settle();
	antiphon_mutex_lock(&mutex);
	IS(cleaned, 0);
	ready = 1;
	antiphon_cond_signal(&changed);
	antiphon_mutex_unlock(&mutex);
	YES(join(waiter) == PTHREAD_CANCELED);
	IS(returned, 1);
	IS(cleaned, 1);

	antiphon_mutex_lock(&mutex);
	waiting = returned = 0;
	waiter = start(lock_cancelled, NULL);
	IS(pthread_cancel(waiter), 0);
	settle();
	antiphon_mutex_unlock(&mutex);
	YES(join(waiter) == PTHREAD_CANCELED);
	IS(returned, 1);
	IS(antiphon_mutex_destroy(&mutex), 0);
	return failures != 0;
}
