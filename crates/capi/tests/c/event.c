/* Events and latches: which waiters are told, what is seen, times, each error. */
#include "check.h"

#include <antiphon_event.h>

enum { ROUNDS = 20000, THREADS = 4 };

static antiphon_event_t asked = ANTIPHON_EVENT_INIT, answered = ANTIPHON_EVENT_INIT;
static antiphon_event_t turn = ANTIPHON_EVENT_INIT;
static antiphon_latch_t done = ANTIPHON_LATCH_INIT(THREADS), gate;
static int number, count, part[THREADS];

static void *answer(void *unused)
{
	int round;
	(void)unused;
	for (round = 0; round < ROUNDS; round++) {
		antiphon_event_wait(&asked);
		number++;
		antiphon_event_set(&answered);
	}
	return NULL;
}

static void ping_pong(void)
{
	pthread_t thread = start(answer, NULL);
	int round;
	for (round = 0; round < ROUNDS; round++) {
		IS(number, round);
		antiphon_event_set(&asked);
		antiphon_event_wait(&answered);
	}
	join(thread);
	IS(number, ROUNDS);
}

/* The event as the right to count. */
static void *count_alone(void *unused)
{
	int round;
	(void)unused;
	for (round = 0; round < ROUNDS / THREADS; round++) {
		antiphon_event_wait(&turn);
		count++;
		antiphon_event_set(&turn);
	}
	return NULL;
}

static void *wait_turn(void *unused)
{
	(void)unused;
	antiphon_event_wait(&turn);
	return NULL;
}

static void alone(void)
{
	pthread_t threads[THREADS];
	int at;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(count_alone, NULL);
	antiphon_event_set(&turn);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(count, ROUNDS);
	IS(antiphon_event_is_set(&turn), 1);
	antiphon_event_reset(&turn);
	IS(antiphon_event_is_set(&turn), 0);
	threads[0] = start(wait_turn, NULL);
	while (antiphon_event_destroy(&turn) == 0)
		usleep(1000);
	IS(antiphon_event_destroy(&turn), EBUSY);
	antiphon_event_set(&turn);
	join(threads[0]);
	IS(antiphon_event_destroy(&turn), 0);
}

static void event_codes(void)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec past = { 0, 0 }, odd = { 0, 1000000000 };
	static union {
		antiphon_event_t event;
		char bytes[256];
	} made;
	size_t at;
	memset(&made, 0xff, sizeof made);
	IS(antiphon_event_init((antiphon_event_t *)(void *)(made.bytes + 8)), EINVAL);
	IS(antiphon_event_init(&made.event), 0);
	IS(antiphon_event_trywait(&made.event), EBUSY);
	antiphon_event_set(&made.event);
	antiphon_event_set(&made.event);
	IS(antiphon_event_timedwait(&made.event, 99, &past), EINVAL);
	IS(antiphon_event_timedwait(&made.event, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_event_timedwait(&made.event, CLOCK_MONOTONIC, &past), 0);
	errno = 77;
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		IS(antiphon_event_timedwait(&made.event, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
	}
	IS(errno, 77);
	antiphon_event_set(&made.event);
	IS(antiphon_event_trywait(&made.event), 0);
	IS(antiphon_event_trywait(&made.event), EBUSY);
}

static void *do_part(void *mine)
{
	*(int *)mine = 1;
	antiphon_latch_count_down(&done, 1);
	return NULL;
}

static void *wait_done(void *unused)
{
	int at;
	(void)unused;
	antiphon_latch_wait(&done);
	for (at = 0; at < THREADS; at++)
		IS(part[at], 1);
	return NULL;
}

static void *wait_gate(void *unused)
{
	(void)unused;
	antiphon_latch_wait(&gate);
	return NULL;
}

static void latches(void)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5), past = { 0, 0 }, odd = { 0, -1 };
	pthread_t waiters[THREADS], doers[THREADS];
	antiphon_latch_t open;
	int at;
	IS(antiphon_latch_trywait(&done), EBUSY);
	IS(antiphon_latch_left(&done), THREADS);
	IS(antiphon_latch_timedwait(&done, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	for (at = 0; at < THREADS; at++)
		waiters[at] = start(wait_done, NULL);
	for (at = 0; at < THREADS; at++)
		doers[at] = start(do_part, &part[at]);
	for (at = 0; at < THREADS; at++) {
		join(waiters[at]);
		join(doers[at]);
	}
	IS(antiphon_latch_left(&done), 0);
	IS(antiphon_latch_timedwait(&done, CLOCK_MONOTONIC, &past), 0);
	IS(antiphon_latch_timedwait(&done, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_latch_timedwait(&done, 99, &past), EINVAL);
	IS(antiphon_latch_destroy(&done), 0);
	/* A latch of zero bytes counts from 1. */
	IS(antiphon_latch_left(&gate), 1);
	waiters[0] = start(wait_gate, NULL);
	while (antiphon_latch_destroy(&gate) == 0)
		usleep(1000);
	antiphon_latch_count_down(&gate, 7);
	join(waiters[0]);
	IS(antiphon_latch_init(&open, 0), 0);
	IS(antiphon_latch_trywait(&open), 0);
	IS(antiphon_latch_init(&open, ANTIPHON_LATCH_MAX), 0);
	IS(antiphon_latch_left(&open), ANTIPHON_LATCH_MAX);
	IS(antiphon_latch_init(&open, ANTIPHON_LATCH_MAX + 1), EINVAL);
}

int main(void)
{
	watchdog();
	ping_pong();
	alone();
	event_codes();
	latches();
	return failures != 0;
}
