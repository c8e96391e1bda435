// yes: a thread waits for what was notified before. no: it looks at the condition first.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static bool here;

static void *bring(void *unused)
{
	pthread_mutex_lock(&lock);
	here = true;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void await(bool looks)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 60000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&lock);
	if (!looks || !here)
		pthread_cond_timedwait(&came, &lock, &until);
	here = false;
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	bool misses = asked(argc, argv);
	for (int round = 0; round < 5; round++) {
		together(1, bring);
		await(!misses);
	}
}
