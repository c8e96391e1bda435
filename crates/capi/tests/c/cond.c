/* Condition variables: notifications, times, and an object that goes as soon as it may. */
#include "check.h"

#include <antiphon.h>

enum { ITEMS = 5000, WAITERS = 3, ROUNDS = 600 };

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_cond_t changed = ANTIPHON_COND_INIT;
static int slot, waiting, woken;

static void *produce(void *unused)
{
	int item;
	(void)unused;
	for (item = 1; item <= ITEMS; item++) {
		antiphon_mutex_lock(&mutex);
		while (slot)
			antiphon_cond_wait(&changed, &mutex);
		slot = item;
		antiphon_mutex_unlock(&mutex);
		antiphon_cond_broadcast(&changed);
	}
	return NULL;
}

static void queue(void)
{
	pthread_t producer = start(produce, NULL);
	int item;
	for (item = 1; item <= ITEMS; item++) {
		antiphon_mutex_lock(&mutex);
		while (!slot)
			antiphon_cond_wait(&changed, &mutex);
		IS(slot, item);
		slot = 0;
		antiphon_mutex_unlock(&mutex);
		antiphon_cond_signal(&changed);
	}
	join(producer);
}

static void times(void)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec odd = { 0, -1 }, past = { 0, 0 };
	size_t at;
	antiphon_mutex_lock(&mutex);
	IS(antiphon_cond_timedwait(&changed, &mutex, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_cond_timedwait(&changed, &mutex, 99, &past), EINVAL);
	errno = 77;
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		IS(antiphon_cond_timedwait(&changed, &mutex, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
		IS(antiphon_cond_timedwait(&changed, &mutex, clocks[at], &past), ETIMEDOUT);
	}
	IS(errno, 77);
	IS(antiphon_mutex_trylock(&mutex), EBUSY);
	antiphon_mutex_unlock(&mutex);
}

static void *wait_once(void *unused)
{
	struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);
	(void)unused;
	antiphon_mutex_lock(&mutex);
	waiting++;
	IS(antiphon_cond_timedwait(&changed, &mutex, CLOCK_MONOTONIC, &late), 0);
	woken++;
	antiphon_mutex_unlock(&mutex);
	return NULL;
}

/* Signals wake one waiter at a time, and destroy knows of waiters. */
static void signals(void)
{
	pthread_t waiters[WAITERS];
	int at;
	waiting = woken = 0;
	for (at = 0; at < WAITERS; at++)
		waiters[at] = start(wait_once, NULL);
	for (;;) {
		antiphon_mutex_lock(&mutex);
		if (waiting == WAITERS)
			break;
		antiphon_mutex_unlock(&mutex);
		usleep(1000);
	}
	IS(antiphon_cond_destroy(&changed), EBUSY);
	for (at = 0; at < WAITERS; at++) {
		IS(woken, 0);
		antiphon_cond_signal(&changed);
	}
	IS(antiphon_cond_destroy(&changed), 0);
	antiphon_mutex_unlock(&mutex);
	for (at = 0; at < WAITERS; at++)
		join(waiters[at]);
	IS(woken, WAITERS);
}

/* POSIX on destruction: it is allowed as soon as the waiters are notified. Some are just giving
 * up. */
struct brief {
	antiphon_mutex_t mutex;
	antiphon_cond_t *cond;
	int waiting, over;
};

static void *wait_briefly(void *argument)
{
	struct brief *brief = argument;
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 1);
	antiphon_mutex_lock(&brief->mutex);
	brief->waiting++;
	while (!brief->over) {
		int code = antiphon_cond_timedwait(brief->cond, &brief->mutex, CLOCK_MONOTONIC,
						   &soon);
		if (code == ETIMEDOUT)
			soon = in_ms(CLOCK_MONOTONIC, 1);
	}
	antiphon_mutex_unlock(&brief->mutex);
	return NULL;
}

static void destruction(int round)
{
	struct brief brief = { ANTIPHON_MUTEX_INIT, NULL, 0, 0 };
	pthread_t waiters[2];
	/* One alone is woken at once; several are moved to the mutex's queue in their sleep. */
	int at, count = 1 + round % 2;
	/* On a page of its own, which no thread may touch later. */
	brief.cond = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	YES(brief.cond != MAP_FAILED);
	for (at = 0; at < count; at++)
		waiters[at] = start(wait_briefly, &brief);
	for (;;) {
		antiphon_mutex_lock(&brief.mutex);
		if (brief.waiting == count)
			break;
		antiphon_mutex_unlock(&brief.mutex);
		sched_yield();
	}
	if (round % 3 == 0) {
		antiphon_mutex_unlock(&brief.mutex);
		/* About when they give up. */
		usleep(1000);
		antiphon_mutex_lock(&brief.mutex);
	}
	brief.over = 1;
	antiphon_cond_broadcast(brief.cond);
	if (round % 4 < 2)
		antiphon_mutex_unlock(&brief.mutex);
	IS(antiphon_cond_destroy(brief.cond), 0);
	IS(munmap(brief.cond, 4096), 0);
	if (round % 4 >= 2)
		antiphon_mutex_unlock(&brief.mutex);
	for (at = 0; at < count; at++)
		join(waiters[at]);
}

int main(void)
{
	int round;
	watchdog();
	queue();
	times();
	for (round = 0; round < 20; round++)
		signals();
	for (round = 0; round < ROUNDS; round++)
		destruction(round);
	return failures != 0;
}
