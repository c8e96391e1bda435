/* Events, latches and broadcasts in memory that processes share. */
#include "check.h"

#include <antiphon_pshared_event.h>
#include <signal.h>

enum { PROCESSES = 3, EACH = 3000 };

static struct shared {
	antiphon_pshared_event_t turn, asked, answered;
	antiphon_pshared_latch_t begun;
	antiphon_pshared_broadcast_t grown;
	int count, number, height;
} *shared;

static int count_alone(void)
{
	int at;
	for (at = 0; at < EACH; at++) {
		antiphon_pshared_event_wait(&shared->turn);
		shared->count++;
		antiphon_pshared_event_set(&shared->turn);
	}
	return 0;
}

static int answer(void)
{
	antiphon_pshared_event_wait(&shared->asked);
	shared->number *= 2;
	antiphon_pshared_event_set(&shared->answered);
	return 0;
}

/* Follows a sender from height to height; each is seen once it was sent. */
static int follow(void)
{
	int seen = 0;
	antiphon_pshared_latch_count_down(&shared->begun, 1);
	antiphon_pshared_latch_wait(&shared->begun);
	while (seen < EACH) {
		uint32_t now = antiphon_pshared_broadcast_now(&shared->grown);
		int height = __atomic_load_n(&shared->height, __ATOMIC_RELAXED);
		if (height == seen)
			antiphon_pshared_broadcast_wait(&shared->grown, now);
		seen = height;
	}
	return 0;
}

static pid_t child(int (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		watchdog();
		_exit(run());
	}
	return pid;
}

static void codes(void)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec odd = { 0, 1000000000 }, past = { 0, 0 };
	antiphon_pshared_event_t made;
	size_t at;
	memset(&made, 0xff, sizeof made);
	antiphon_pshared_event_init(&made);
	IS(antiphon_pshared_event_trywait(&made), EBUSY);
	IS(antiphon_pshared_event_timedwait(&made, 99, &past), EINVAL);
	IS(antiphon_pshared_event_timedwait(&made, CLOCK_REALTIME, &odd), EINVAL);
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		IS(antiphon_pshared_event_timedwait(&made, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
	}
	antiphon_pshared_event_set(&made);
	antiphon_pshared_event_set(&made);
	IS(antiphon_pshared_event_timedwait(&made, CLOCK_REALTIME, &past), 0);
	IS(antiphon_pshared_event_trywait(&made), EBUSY);
}

static void codes_of_latches_and_broadcasts(void)
{
	struct timespec past = { 0, 0 }, soon = in_ms(CLOCK_MONOTONIC, 5);
	antiphon_pshared_latch_t latch = ANTIPHON_PSHARED_LATCH_INIT(2);
	antiphon_pshared_broadcast_t broadcast;
	uint32_t now;
	memset(&broadcast, 0xff, sizeof broadcast);
	antiphon_pshared_broadcast_init(&broadcast);
	IS(antiphon_pshared_latch_init(&latch, ANTIPHON_LATCH_MAX + 1), EINVAL);
	IS(antiphon_pshared_latch_trywait(&latch), EBUSY);
	IS(antiphon_pshared_latch_timedwait(&latch, 99, &past), EINVAL);
	IS(antiphon_pshared_latch_timedwait(&latch, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	antiphon_pshared_latch_count_down(&latch, 1);
	IS(antiphon_pshared_latch_trywait(&latch), EBUSY);
	antiphon_pshared_latch_count_down(&latch, 7);
	IS(antiphon_pshared_latch_trywait(&latch), 0);
	IS(antiphon_pshared_latch_timedwait(&latch, CLOCK_REALTIME, &past), 0);
	antiphon_pshared_latch_wait(&latch);
	now = antiphon_pshared_broadcast_now(&broadcast);
	IS(antiphon_pshared_broadcast_timedwait(&broadcast, now, 99, &past), EINVAL);
	IS(antiphon_pshared_broadcast_timedwait(&broadcast, now, CLOCK_REALTIME, &past), ETIMEDOUT);
	antiphon_pshared_broadcast_send(&broadcast);
	IS(antiphon_pshared_broadcast_timedwait(&broadcast, now, CLOCK_REALTIME, &past), 0);
	IS(antiphon_pshared_broadcast_now(&broadcast), now + 1);
	antiphon_pshared_broadcast_wait(&broadcast, now);
}

/* A handler tells these, and interrupts a thread in the midst of telling the same. */
static antiphon_pshared_event_t set;
static antiphon_pshared_latch_t many = ANTIPHON_PSHARED_LATCH_INIT(ANTIPHON_LATCH_MAX);
static antiphon_pshared_broadcast_t sent;
static int handled;

static void tell(int signal)
{
	antiphon_pshared_event_set(&set);
	antiphon_pshared_latch_count_down(&many, 1);
	antiphon_pshared_broadcast_send(&sent);
	if (signal)
		__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *sleep_until_open(void *unused)
{
	while (antiphon_pshared_latch_trywait(&many) == EBUSY) {
		antiphon_pshared_event_wait(&set);
		antiphon_pshared_broadcast_wait(&sent, antiphon_pshared_broadcast_now(&sent));
	}
	return unused;
}

static void *interrupt(void *thread)
{
	int at;
	for (at = 0; at < EACH; at++) {
		IS(pthread_kill(*(pthread_t *)thread, SIGUSR1), 0);
		while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == at)
			sched_yield();
	}
	return NULL;
}

static void handlers_may_tell(void)
{
	pthread_t me = pthread_self(), sleeper, other;
	uint32_t told = 0;
	signal(SIGUSR1, tell);
	sleeper = start(sleep_until_open, NULL);
	other = start(interrupt, &me);
	for (; __atomic_load_n(&handled, __ATOMIC_RELAXED) < EACH; told++)
		tell(0);
	join(other);
	IS(antiphon_pshared_broadcast_now(&sent), told + EACH);
	antiphon_pshared_latch_count_down(&many, ANTIPHON_LATCH_MAX - told - EACH - 1);
	IS(antiphon_pshared_latch_trywait(&many), EBUSY);
	antiphon_pshared_latch_count_down(&many, 1);
	IS(antiphon_pshared_latch_trywait(&many), 0);
	/* The sleeper may have looked at the latch before. */
	while (pthread_tryjoin_np(sleeper, NULL) == EBUSY)
		tell(0);
}

int main(void)
{
	pid_t children[PROCESSES], other;
	int at;
	watchdog();
	codes();
	codes_of_latches_and_broadcasts();
	handlers_may_tell();
	shared = shared_memory(sizeof *shared);
	other = child(answer);
	shared->number = 21;
	antiphon_pshared_event_set(&shared->asked);
	antiphon_pshared_event_wait(&shared->answered);
	IS(shared->number, 42);
	IS(exit_of(other), 0);
	IS(antiphon_pshared_latch_init(&shared->begun, PROCESSES), 0);
	for (at = 0; at < PROCESSES; at++)
		children[at] = child(follow);
	antiphon_pshared_latch_wait(&shared->begun);
	for (at = 1; at <= EACH; at++) {
		__atomic_store_n(&shared->height, at, __ATOMIC_RELAXED);
		antiphon_pshared_broadcast_send(&shared->grown);
	}
	for (at = 0; at < PROCESSES; at++)
		IS(exit_of(children[at]), 0);
	for (at = 0; at < PROCESSES; at++)
		children[at] = child(count_alone);
	antiphon_pshared_event_set(&shared->turn);
	for (at = 0; at < PROCESSES; at++)
		IS(exit_of(children[at]), 0);
	IS(shared->count, PROCESSES * EACH);
	IS(antiphon_pshared_event_trywait(&shared->turn), 0);
	return failures != 0;
}
