// yes: a thread for each of 1600 tasks. no: four threads for all of them.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long done, tasks;

static void *work(void *unused)
{
	for (long i = 0; i < tasks; i++) {
		pthread_mutex_lock(&lock);
		done++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	bool each = asked(argc, argv);
	tasks = each ? 1 : 400;
	for (int round = 0; round < (each ? 400 : 1); round++)
		together(4, work);
}
