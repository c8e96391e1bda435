// yes: it computes, and takes a lock now and then. no: two threads wait for each other's sections.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool quiet;

static void *work(void *number)
{
	(void)number;
	for (int i = 0; i < 50; i++) {
		if (quiet)
			compute(0.002);
		pthread_mutex_lock(&lock);
		if (!quiet)
			usleep(2000);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	quiet = asked(argc, argv);
	together(2, work);
}
