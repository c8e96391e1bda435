// yes: sections are short, but for one in five hundred, in which the owner sleeps. no: none sleeps.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool sleeps;

static void *work(void *number)
{
	volatile long outside = 0;
	for (int i = 1; i <= 20000; i++) {
		pthread_mutex_lock(&lock);
		if (sleeps && !number && i % 500 == 0)
			usleep(4000);
		pthread_mutex_unlock(&lock);
		for (int j = 0; j < 2000; j++)
			outside += j;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	sleeps = asked(argc, argv);
	together(2, work);
}
