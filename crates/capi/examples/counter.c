/* Threads that count together.
 *
 *	cc counter.c $(pkg-config --cflags --libs antiphon) -pthread -o counter */
#include <antiphon.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, EACH = 100000 };

static antiphon_mutex_t lock = ANTIPHON_MUTEX_INIT;
static long count;

static void *add(void *unused)
{
	(void)unused;
	for (int round = 0; round < EACH; round++) {
		antiphon_mutex_lock(&lock);
		count++;
		antiphon_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	for (int at = 0; at < THREADS; at++)
		if (pthread_create(&threads[at], NULL, add, NULL) != 0)
			return 1;
	for (int at = 0; at < THREADS; at++)
		pthread_join(threads[at], NULL);
	printf("%ld\n", count);
	return 0;
}
