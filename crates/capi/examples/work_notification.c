/* A work notification as in Legion: workers sleep, a task is broadcast, one of them claims it.
 *
 *	cc work_notification.c $(pkg-config --cflags --libs antiphon) -pthread -o work_notification */
#include <antiphon_event.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 8, TASKS = 100 };

/* Something has changed that workers look at. */
static antiphon_broadcast_t work = ANTIPHON_BROADCAST_INIT;
/* Tasks that were made, and those that were claimed; how many each worker has done. */
static int made, claimed, done[WORKERS];

/* Whether there is a task that no thread has: it is the caller's then. Relaxed: `now` and `wait`
 * order what was done before a send. */
static int claim(void)
{
	int next = __atomic_load_n(&claimed, __ATOMIC_RELAXED);
	while (next < __atomic_load_n(&made, __ATOMIC_RELAXED))
		if (__atomic_compare_exchange_n(&claimed, &next, next + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return 1;
	return 0;
}

static void *run(void *mine)
{
	for (;;) {
		/* Before the look: a task that is made behind it ends the wait. */
		uint64_t seen = antiphon_broadcast_now(&work);
		if (claim())
			++*(int *)mine;
		else if (__atomic_load_n(&claimed, __ATOMIC_RELAXED) == TASKS)
			break;
		else
			antiphon_broadcast_wait(&work, seen);
	}
	/* The others sleep, and no more tasks will come. */
	antiphon_broadcast_send(&work);
	return NULL;
}

int main(void)
{
	pthread_t workers[WORKERS];
	int all = 0;
	for (int at = 0; at < WORKERS; at++)
		if (pthread_create(&workers[at], NULL, run, &done[at]) != 0)
			return 1;
	for (int task = 0; task < TASKS; task++) {
		__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
		antiphon_broadcast_send(&work);
	}
	for (int at = 0; at < WORKERS; at++) {
		pthread_join(workers[at], NULL);
		all += done[at];
	}
	printf("%d tasks by %d workers, each by one\n", all, WORKERS);
	return 0;
}
