// yes: a thread sleeps until a flag is set. no: it waits to be told.
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

int main(int argc, char **argv)
{
	pthread_t thread;
	polls = asked(argc, argv);
	start(&thread, await, NULL);
	usleep(600000);
	pthread_mutex_lock(&lock);
	here = true;
	pthread_cond_signal(&came);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}
