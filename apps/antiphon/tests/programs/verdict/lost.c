// A signal ends both. yes: a thread waits for what was notified before. no: a worker is notified
// again and again.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&came, &lock);
	return unused;
}

static void tell(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	bool too_early = asked(argc, argv);
	alarm(2);
	if (too_early)
		tell();
	start(&thread, worker, NULL);
	usleep(200000);
	while (!too_early) {
		tell();
		usleep(20000);
	}
	pthread_join(thread, NULL);
}
