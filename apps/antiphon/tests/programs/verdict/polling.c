// yes: a thread sleeps until a flag is set. no: it waits to be told, while another one keeps to a
// rate, by sleeps up to times on the clock.
#include "common.h"
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static atomic_bool here;
static bool polls;

static void *await(void *unused)
{
	if (polls) {
		while (!here)
			usleep(1000);
	} else {
		pthread_mutex_lock(&lock);
		while (!here)
			pthread_cond_wait(&came, &lock);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void keep_to_a_rate(void)
{
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int tick = 0; tick < 300; tick++) {
		next.tv_nsec += 2000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	polls = asked(argc, argv);
	start(&thread, await, NULL);
	if (polls)
		usleep(600000);
	else
		keep_to_a_rate();
	pthread_mutex_lock(&lock);
	here = true;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}
