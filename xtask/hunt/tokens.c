/* Threads that wait for each other on condition variables.
 *
 * The ring has one token, and its owner notifies the next member alone: one lost wake-up, and the
 * ring stands still. The buffer is so small that it soon does too. Neither is helped at the end:
 * the token goes around once more, and each consumer is owed one signal with what ends it. */
#include "hunt.h"

enum { MOST = 32 };

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t conds[MOST];
	int size, turn;
	/* All wait on the first condition variable, and the token is passed by broadcast. */
	int crowded;
	/* Members may wait with a deadline, and look by themselves. */
	int timed;
} ring;

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t filled, emptied;
	int items, capacity, ends;
	/* Consumers may wait with a deadline, and look by themselves. */
	int timed;
	uint64_t produced, consumed;
} buffer;

void set_up_tokens(struct chance *chance, int members)
{
	ring.size = members;
	ring.crowded = one_in(chance, 3);
	ring.timed = one_in(chance, 3);
	buffer.timed = one_in(chance, 3);
	pthread_mutexattr_t attributes;
	MUST(pthread_mutexattr_init(&attributes));
	MUST(pthread_mutexattr_settype(&attributes, (int)below(chance, 3)));
	MUST(pthread_mutex_init(&ring.mutex, &attributes));
	MUST(pthread_mutexattr_settype(&attributes, (int)below(chance, 3)));
	MUST(pthread_mutex_init(&buffer.mutex, &attributes));
	MUST(pthread_mutexattr_destroy(&attributes));
	/* Mostly one: then each notification counts. */
	buffer.capacity = one_in(chance, 4) ? 2 : 1;
	show(MUTEX, &ring.mutex);
	for (int at = 0; at < (ring.crowded ? 1 : members); at++) {
		MUST(pthread_cond_init(&ring.conds[at], NULL));
		show(COND, &ring.conds[at]);
	}
	MUST(pthread_cond_init(&buffer.filled, NULL));
	MUST(pthread_cond_init(&buffer.emptied, NULL));
	show(MUTEX, &buffer.mutex);
	show(COND, &buffer.filled);
	show(COND, &buffer.emptied);
}

static void wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, struct chance *chance)
{
	clockid_t clock = one_in(chance, 2) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	struct timespec until = after_ns(clock, below(chance, 500000));
	int code = clock == CLOCK_REALTIME ? pthread_cond_timedwait(cond, mutex, &until)
					   : pthread_cond_clockwait(cond, mutex, clock, &until);
	if (code == ETIMEDOUT)
		count(TIMEOUTS);
	else
		MUST(code);
}

static void notify_member(int at, struct chance *chance)
{
	if (ring.crowded || one_in(chance, 8))
		MUST(pthread_cond_broadcast(&ring.conds[ring.crowded ? 0 : at]));
	else
		MUST(pthread_cond_signal(&ring.conds[at]));
}

void *member(void *argument)
{
	struct worker *worker = argument;
	struct chance *chance = &worker->chance;
	int at = worker->at, last = 0, following = (at + 1) % ring.size;
	pthread_cond_t *cond = &ring.conds[ring.crowded ? 0 : at];
	while (!last) {
		MUST(pthread_mutex_lock(&ring.mutex));
		while (ring.turn != at) {
			if (ring.timed && one_in(chance, 4))
				wait_until(cond, &ring.mutex, chance);
			else
				MUST(pthread_cond_wait(cond, &ring.mutex));
		}
		/* Whoever has the token after us sees this too, and leaves. */
		last = stops();
		ring.turn = following;
		int within = one_in(chance, 2);
		if (within)
			notify_member(following, chance);
		MUST(pthread_mutex_unlock(&ring.mutex));
		if (!within)
			notify_member(following, chance);
		progress(worker->slot);
	}
	return NULL;
}

void *producer(void *argument)
{
	struct worker *worker = argument;
	while (!stops()) {
		MUST(pthread_mutex_lock(&buffer.mutex));
		while (buffer.items == buffer.capacity)
			MUST(pthread_cond_wait(&buffer.emptied, &buffer.mutex));
		buffer.items++;
		buffer.produced++;
		MUST(pthread_cond_signal(&buffer.filled));
		MUST(pthread_mutex_unlock(&buffer.mutex));
		/* Now and then all consumers go to sleep. */
		if (one_in(&worker->chance, 4))
			usleep(below(&worker->chance, 200));
		else
			spin_for(below(&worker->chance, 2000));
		progress(worker->slot);
	}
	return NULL;
}

static void release(void *mutex)
{
	MUST(pthread_mutex_unlock(mutex));
}

/* Waits with the mutex held until there is something to take. The pest may cancel us here. */
static void wait_for_item(struct chance *chance)
{
	pthread_cleanup_push(release, &buffer.mutex);
	while (!buffer.items && !buffer.ends) {
		if (buffer.timed && one_in(chance, 8))
			wait_until(&buffer.filled, &buffer.mutex, chance);
		else
			MUST(pthread_cond_wait(&buffer.filled, &buffer.mutex));
	}
	pthread_cleanup_pop(0);
}

/* Takes an item; returns whether it was the one that ends the caller. */
static int consume(struct chance *chance)
{
	MUST(pthread_mutex_lock(&buffer.mutex));
	wait_for_item(chance);
	int ended = !buffer.items;
	if (ended) {
		buffer.ends--;
	} else {
		buffer.items--;
		__atomic_fetch_add(&buffer.consumed, 1, __ATOMIC_RELAXED);
		MUST(pthread_cond_signal(&buffer.emptied));
	}
	MUST(pthread_mutex_unlock(&buffer.mutex));
	return ended;
}

void *consumer(void *argument)
{
	struct worker *worker = argument;
	while (!consume(&worker->chance)) {
		pthread_testcancel();
		spin_for(below(&worker->chance, 2000));
		progress(worker->slot);
	}
	return NULL;
}

void await_consumption(void)
{
	uint64_t seen = __atomic_load_n(&buffer.consumed, __ATOMIC_RELAXED);
	while (__atomic_load_n(&buffer.consumed, __ATOMIC_RELAXED) == seen)
		usleep(50);
}

void end_consumers(int consumers)
{
	MUST(pthread_mutex_lock(&buffer.mutex));
	buffer.ends = consumers;
	for (int at = 0; at < consumers; at++)
		MUST(pthread_cond_signal(&buffer.filled));
	MUST(pthread_mutex_unlock(&buffer.mutex));
}

void check_buffer(void)
{
	if (buffer.produced != buffer.consumed || buffer.items || buffer.ends)
		broken("items were lost", (long)(buffer.produced - buffer.consumed));
}
