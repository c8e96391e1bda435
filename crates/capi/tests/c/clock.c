/* The clock: a later stamp is not before an earlier one, and a zeroed clock is certain of
 * nothing. */
#include "check.h"

#include <antiphon_clock.h>

enum { PASSES = 2000 };

static antiphon_clock_t timer;
static uint64_t passed_on;

/* Takes turns with the main thread; each stamp is taken after the other's was seen. */
static void *pass_back(void *unused)
{
	int pass;
	(void)unused;
	for (pass = 0; pass < PASSES; pass++) {
		uint64_t theirs;
		while (!((theirs = __atomic_load_n(&passed_on, __ATOMIC_ACQUIRE)) & 1))
			sched_yield();
		YES(antiphon_clock_compare(&timer, antiphon_clock_now(), theirs >> 1) !=
		    ANTIPHON_BEFORE);
		__atomic_store_n(&passed_on, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void measured(void)
{
	antiphon_clock_t again;
	char text[400], cut[8];
	uint64_t first, later = 0;
	pthread_t thread;
	int pass;
	IS(antiphon_clock_shared(&timer), 0);
	IS(antiphon_clock_shared(&again), 0);
	IS(antiphon_clock_uncertainty_ns(&again), antiphon_clock_uncertainty_ns(&timer));
	IS(antiphon_clock_measure(&again), 0);
	YES(antiphon_clock_cpus(&timer) >= 1);
	first = antiphon_clock_now();
	IS(antiphon_clock_compare(&timer, first, first), ANTIPHON_UNCERTAIN);
	IS(antiphon_clock_compare(&timer, 0, first), ANTIPHON_BEFORE);
	IS(antiphon_clock_compare(&timer, first, 0), ANTIPHON_AFTER);
	IS(antiphon_clock_new_time(&timer, first, &later), 0);
	IS(antiphon_clock_compare(&timer, later, first), ANTIPHON_AFTER);
	/* A stamp that is not from here is not waited for. */
	IS(antiphon_clock_new_time(&timer, UINT64_MAX, &later), EINVAL);
	IS(antiphon_clock_verify(&timer), 0);
	IS(antiphon_clock_verify(&again), 0);
	thread = start(pass_back, NULL);
	for (pass = 0; pass < PASSES; pass++) {
		__atomic_store_n(&passed_on, antiphon_clock_now() << 1 | 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&passed_on, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	join(thread);
	IS(antiphon_clock_source(text, sizeof text), strlen(text));
	YES(strstr(text, antiphon_clock_has_counters() ? "counters of the CPUs" : "monotonic"));
	IS(antiphon_clock_source(cut, sizeof cut), strlen(text));
	IS(strncmp(cut, text, 7), 0);
	IS(cut[7], 0);
	IS(antiphon_clock_source(NULL, 0), strlen(text));
}

static void not_measured(void)
{
	antiphon_clock_t none;
	uint64_t later = 7;
	memset(&none, 0, sizeof none);
	IS(antiphon_clock_compare(&none, 0, UINT64_MAX), ANTIPHON_UNCERTAIN);
	IS(antiphon_clock_new_time(&none, 1, &later), EINVAL);
	IS(later, 7);
	IS(antiphon_clock_cpus(&none), 0);
	IS(antiphon_clock_verify(&none), EINVAL);
	YES(antiphon_clock_uncertainty_ns(&none) == UINT64_MAX);
}

int main(void)
{
	watchdog();
	not_measured();
	measured();
	return failures != 0;
}
