// What the programs of the verdict's rules share. Each takes one argument: `yes` has it show the
// defect, `no` has it do nearly the same without.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool asked(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "yes") || !strcmp(argv[1], "no")))
		return argv[1][0] == 'y';
	fprintf(stderr, "usage: %s yes|no\n", argv[0]);
	exit(2);
}

static void start(pthread_t *thread, void *(*work)(void *), void *argument)
{
	if (pthread_create(thread, NULL, work, argument))
		abort();
}

// Runs `work` in that many threads, which get their numbers, to their ends.
static void __attribute__((unused)) together(int threads, void *(*work)(void *))
{
	pthread_t all[64];
	for (long number = 0; number < threads; number++)
		start(&all[number], work, (void *)number);
	for (int number = 0; number < threads; number++)
		pthread_join(all[number], NULL);
}

static double __attribute__((unused)) cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

// Computes until the thread has had its CPU for that long.
static void __attribute__((unused)) compute(double seconds)
{
	double until = cpu_s() + seconds;
	while (cpu_s() < until)
		;
}
