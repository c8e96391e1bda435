/* Events in memory that processes share: each set has one taker, of any process. */
#include "check.h"

#include <antiphon_event.h>

enum { PROCESSES = 3, EACH = 3000 };

static struct shared {
	antiphon_pshared_event_t turn, asked, answered;
	int count, number;
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

int main(void)
{
	pid_t children[PROCESSES], other;
	int at;
	watchdog();
	codes();
	shared = shared_memory(sizeof *shared);
	other = child(answer);
	shared->number = 21;
	antiphon_pshared_event_set(&shared->asked);
	antiphon_pshared_event_wait(&shared->answered);
	IS(shared->number, 42);
	IS(exit_of(other), 0);
	for (at = 0; at < PROCESSES; at++)
		children[at] = child(count_alone);
	antiphon_pshared_event_set(&shared->turn);
	for (at = 0; at < PROCESSES; at++)
		IS(exit_of(children[at]), 0);
	IS(shared->count, PROCESSES * EACH);
	IS(antiphon_pshared_event_trywait(&shared->turn), 0);
	return failures != 0;
}
