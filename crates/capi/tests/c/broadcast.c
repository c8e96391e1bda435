/* Event counts and broadcasts: no waiter misses what was sent behind its look; times, misuse. */
#include "check.h"

#include <antiphon_event.h>

enum { THREADS = 4, ITEMS = 20000, ROUNDS = 500 };

static antiphon_event_count_t filled = ANTIPHON_EVENT_COUNT_INIT;
static antiphon_broadcast_t work = ANTIPHON_BROADCAST_INIT;
static long put, taken, sum;
static int round_sent, back;

static long load(long *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* The next item, if there is one that no thread has: a queue of numbers. */
static long take(void)
{
	long next = load(&taken);
	while (next < load(&put))
		if (__atomic_compare_exchange_n(&taken, &next, next + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return next + 1;
	return 0;
}

static void *consume(void *unused)
{
	antiphon_event_key_t key = ANTIPHON_EVENT_KEY_INIT;
	long item;
	(void)unused;
	for (;;) {
		antiphon_event_count_prepare(&filled, &key);
		item = take();
		if (item == 0 && load(&taken) == ITEMS) {
			antiphon_event_count_cancel(&key);
			return NULL;
		}
		if (item == 0) {
			antiphon_event_count_wait(&key);
			continue;
		}
		antiphon_event_count_cancel(&key);
		__atomic_add_fetch(&sum, item, __ATOMIC_RELAXED);
	}
}

static void event_counts(void)
{
	pthread_t threads[THREADS];
	int at;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(consume, NULL);
	for (at = 0; at < ITEMS; at++) {
		__atomic_add_fetch(&put, 1, __ATOMIC_RELAXED);
		antiphon_event_count_notify(&filled, 1);
	}
	while (load(&taken) < ITEMS)
		usleep(100);
	antiphon_event_count_notify_all(&filled);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(sum, (long)ITEMS * (ITEMS + 1) / 2);
}

static void keys(void)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec late = in_ms(CLOCK_MONOTONIC, 60000), odd = { 0, -1 };
	antiphon_event_key_t key = ANTIPHON_EVENT_KEY_INIT;
	antiphon_event_count_t made;
	size_t at;
	/* A key that is not prepared is not waited for. */
	antiphon_event_count_wait(&key);
	antiphon_event_count_cancel(&key);
	IS(antiphon_event_count_timedwait(&key, CLOCK_MONOTONIC, &late), 0);
	memset(&made, 0xff, sizeof made);
	antiphon_event_count_init(&made);
	IS(antiphon_event_count_destroy(&made), 0);
	antiphon_event_count_prepare(&made, &key);
	IS(antiphon_event_count_destroy(&made), EBUSY);
	antiphon_event_count_notify_all(&made);
	IS(antiphon_event_count_timedwait(&key, CLOCK_MONOTONIC, &late), 0);
	/* The key was used: cancelling it does nothing. */
	antiphon_event_count_cancel(&key);
	antiphon_event_count_wait(&key);
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		antiphon_event_count_prepare(&made, &key);
		IS(antiphon_event_count_timedwait(&key, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
	}
	/* The failed wait has cancelled the key. */
	antiphon_event_count_prepare(&made, &key);
	IS(antiphon_event_count_timedwait(&key, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_event_count_destroy(&made), 0);
	antiphon_event_count_prepare(&made, &key);
	IS(antiphon_event_count_timedwait(&key, 99, &late), EINVAL);
	IS(antiphon_event_count_destroy(&made), 0);
}

static void *follow(void *unused)
{
	int expected;
	(void)unused;
	for (expected = 1; expected <= ROUNDS; expected++) {
		for (;;) {
			uint64_t seen = antiphon_broadcast_now(&work);
			if (__atomic_load_n(&round_sent, __ATOMIC_RELAXED) >= expected)
				break;
			antiphon_broadcast_wait(&work, seen);
		}
		__atomic_add_fetch(&back, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *wait_one(void *unused)
{
	(void)unused;
	antiphon_broadcast_wait(&work, antiphon_broadcast_now(&work));
	return NULL;
}

static void broadcasts(void)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5), odd = { 0, -1 }, past = { 0, 0 };
	static union {
		antiphon_broadcast_t broadcast;
		char bytes[1152 + 128];
	} made;
	pthread_t threads[THREADS];
	uint64_t seen;
	int at, round;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(follow, NULL);
	for (round = 1; round <= ROUNDS; round++) {
		__atomic_store_n(&round_sent, round, __ATOMIC_RELAXED);
		antiphon_broadcast_send(&work);
		while (__atomic_load_n(&back, __ATOMIC_RELAXED) < round * THREADS)
			sched_yield();
	}
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	seen = antiphon_broadcast_now(&work);
	IS(antiphon_broadcast_timedwait(&work, seen, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	IS(antiphon_broadcast_timedwait(&work, seen, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_broadcast_timedwait(&work, seen, 99, &soon), EINVAL);
	threads[0] = start(wait_one, NULL);
	while (antiphon_broadcast_destroy(&work) == 0)
		usleep(1000);
	antiphon_broadcast_send(&work);
	join(threads[0]);
	IS(antiphon_broadcast_timedwait(&work, seen, CLOCK_MONOTONIC, &past), 0);
	/* A number of no broadcast at all. */
	antiphon_broadcast_wait(&work, UINT64_MAX);
	IS(antiphon_broadcast_destroy(&work), 0);
	IS(antiphon_broadcast_init((antiphon_broadcast_t *)(void *)(made.bytes + 64)), EINVAL);
	IS(antiphon_broadcast_init(&made.broadcast), 0);
	IS(antiphon_broadcast_now(&made.broadcast), 0);
}

int main(void)
{
	watchdog();
	event_counts();
	keys();
	broadcasts();
	return failures != 0;
}
