// yes: a thread waits for a condition with a deadline of a millisecond, and none notifies it. no:
// it waits with a long deadline, and is notified.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static bool here, polls;

static void *await(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!here) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		if (polls)
			until.tv_nsec += 1000000;
		else
			until.tv_sec += 60;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&came, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	polls = asked(argc, argv);
	start(&thread, await, NULL);
	usleep(600000);
	pthread_mutex_lock(&lock);
	here = true;
	if (!polls)
		pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}
