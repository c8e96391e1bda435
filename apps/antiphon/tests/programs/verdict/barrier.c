// Four threads meet at a barrier. yes: one has ten times as much to do as the others. no: all have
// the same.
#include "common.h"

static pthread_barrier_t barrier;
static bool uneven;

static void *work(void *number)
{
	for (int step = 0; step < 40; step++) {
		compute(uneven && !number ? 0.01 : 0.001);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uneven = asked(argc, argv);
	pthread_barrier_init(&barrier, NULL, 4);
	together(4, work);
}
