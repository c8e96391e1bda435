// yes: each item is announced, though no thread waits. no: only those that a thread waits for.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static int items, waiting;
static bool always;

static void *taker(void *unused)
{
	for (int taken = 0; taken < 2000; taken++) {
		pthread_mutex_lock(&lock);
		waiting++;
		while (!items)
			pthread_cond_wait(&came, &lock);
		waiting--;
		items--;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	always = asked(argc, argv);
	if (!always)
		start(&thread, taker, NULL);
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&lock);
		items++;
		if (always || (waiting && items == 1))
			pthread_cond_signal(&came);
		pthread_mutex_unlock(&lock);
	}
	if (!always)
		pthread_join(thread, NULL);
}
