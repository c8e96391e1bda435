/* A queue of a few places between two threads. The taker doesn't wait for ever.
 *
 *	cc queue.c $(pkg-config --cflags --libs antiphon) -pthread -o queue */
#define _POSIX_C_SOURCE 200809L
#include <antiphon.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { PLACES = 4, ITEMS = 1000 };

/* All zero: an empty queue. */
static struct {
	antiphon_mutex_t lock;
	antiphon_cond_t filled, emptied;
	int items[PLACES];
	unsigned put, taken;
} queue;

static void put(int item)
{
	antiphon_mutex_lock(&queue.lock);
	while (queue.put - queue.taken == PLACES)
		antiphon_cond_wait(&queue.emptied, &queue.lock);
	queue.items[queue.put++ % PLACES] = item;
	antiphon_mutex_unlock(&queue.lock);
	antiphon_cond_signal(&queue.filled);
}

/* 0, or ETIMEDOUT if nothing has come by `until`. */
static int take(int *item, const struct timespec *until)
{
	int code = 0;
	antiphon_mutex_lock(&queue.lock);
	while (queue.put == queue.taken && code == 0)
		code = antiphon_cond_timedwait(&queue.filled, &queue.lock, CLOCK_MONOTONIC, until);
	if (queue.put != queue.taken) {
		*item = queue.items[queue.taken++ % PLACES];
		code = 0;
	}
	antiphon_mutex_unlock(&queue.lock);
	antiphon_cond_signal(&queue.emptied);
	return code;
}

static void *produce(void *unused)
{
	(void)unused;
	for (int item = 1; item <= ITEMS; item++)
		put(item);
	return NULL;
}

int main(void)
{
	pthread_t producer;
	struct timespec until;
	long sum = 0;
	int item = 0;
	if (pthread_create(&producer, NULL, produce, NULL) != 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 60;
	for (int at = 0; at < ITEMS && take(&item, &until) == 0; at++)
		sum += item;
	pthread_join(producer, NULL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	printf("%ld, then %s\n", sum, take(&item, &until) == ETIMEDOUT ? "nothing" : "more");
	return 0;
}
