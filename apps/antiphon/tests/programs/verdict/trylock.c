// yes: threads try the lock until they get it. no: they try another lock after each failure.
#include "common.h"

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static bool insists;

static void *take(void *unused)
{
	for (int turn = 0; turn < 400; turn++) {
		int at = 0;
		while (pthread_mutex_trylock(&locks[at]))
			at = insists ? 0 : !at;
		// The owner sleeps: the other thread tries for all that time.
		if (insists)
			usleep(500);
		pthread_mutex_unlock(&locks[at]);
		if (insists)
			usleep(100);
	}
	return unused;
}

int main(int argc, char **argv)
{
	insists = asked(argc, argv);
	together(2, take);
}
