/* Mutexes and spinlocks: exclusion, each error, times. */
#include "check.h"

#include <antiphon.h>
#include <limits.h>

enum { THREADS = 4, EACH = 20000 };

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_spin_t spin = ANTIPHON_SPIN_INIT;
static long count, spun;

static void *add(void *unused)
{
	int round;
	(void)unused;
	for (round = 0; round < EACH; round++) {
		antiphon_mutex_lock(&mutex);
		count++;
		antiphon_mutex_unlock(&mutex);
		antiphon_spin_lock(&spin);
		spun++;
		antiphon_spin_unlock(&spin);
	}
	return NULL;
}

static void exclusion(void)
{
	pthread_t threads[THREADS];
	int at;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(add, NULL);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(count, THREADS * EACH);
	IS(spun, THREADS * EACH);
}

static void *try_both(void *unused)
{
	(void)unused;
	IS(antiphon_mutex_trylock(&mutex), EBUSY);
	IS(antiphon_spin_trylock(&spin), EBUSY);
	return NULL;
}

static void *unlock_both(void *unused)
{
	(void)unused;
	antiphon_mutex_unlock(&mutex);
	antiphon_spin_unlock(&spin);
	return NULL;
}

static void tries(void)
{
	antiphon_mutex_t moved;
	IS(antiphon_mutex_trylock(&mutex), 0);
	IS(antiphon_spin_trylock(&spin), 0);
	elsewhere(try_both, NULL);
	IS(antiphon_mutex_destroy(&mutex), EBUSY);
	IS(antiphon_spin_destroy(&spin), EBUSY);
	elsewhere(unlock_both, NULL);
	IS(antiphon_mutex_destroy(&mutex), 0);
	IS(antiphon_spin_destroy(&spin), 0);
	memcpy(&moved, &mutex, sizeof moved);
	antiphon_mutex_lock(&moved);
	IS(antiphon_mutex_trylock(&mutex), 0);
	antiphon_mutex_unlock(&mutex);
}

static void *time_out(void *unused)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec until = { -1, 0 };
	size_t at;
	(void)unused;
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		IS(antiphon_mutex_timedlock(&mutex, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
		IS(antiphon_mutex_timedlock(&mutex, clocks[at], &until), ETIMEDOUT);
	}
	return NULL;
}

static void *wait_for_ever(void *unused)
{
	struct timespec never = { LONG_MAX, 999999999 };
	(void)unused;
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &never), 0);
	antiphon_mutex_unlock(&mutex);
	return NULL;
}

static void times(void)
{
	struct timespec past = { 0, 0 }, odd = { 0, 1000000000 }, negative = { 1, -1 };
	pthread_t waiter;
	/* Wrong arguments are wrong, free or not. */
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &negative), EINVAL);
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	IS(antiphon_mutex_timedlock(&mutex, -1, &past), EINVAL);
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past), 0);
	elsewhere(time_out, NULL);
	waiter = start(wait_for_ever, NULL);
	settle();
	antiphon_mutex_unlock(&mutex);
	join(waiter);
}

static void errno_stays(void)
{
	struct timespec past = { 0, 0 };
	antiphon_mutex_lock(&mutex);
	errno = 77;
	IS(antiphon_mutex_timedlock(&mutex, CLOCK_REALTIME, &past), ETIMEDOUT);
	IS(antiphon_mutex_trylock(&mutex), EBUSY);
	antiphon_mutex_unlock(&mutex);
	IS(errno, 77);
}

int main(void)
{
	int light;
	watchdog();
	exclusion();
	tries();
	times();
	errno_stays();
	/* The same again in the light form, where it can be had. */
	light = antiphon_enable_light();
	YES(light == 0 || light == ENOTSUP);
	count = spun = 0;
	exclusion();
	times();
	return failures != 0;
}
