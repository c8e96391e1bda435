// Two threads hand an item to each other, by a condition. yes: there is nothing to do with it. no:
// there is, for a part of a millisecond.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static long turn;
static bool tiny;

static void *play(void *number)
{
	volatile long sum = 0;
	for (int i = 0; i < (tiny ? 20000 : 1000); i++) {
		pthread_mutex_lock(&lock);
		while (turn != (long)number)
			pthread_cond_wait(&came, &lock);
		for (int j = 0; !tiny && j < 300000; j++)
			sum += j;
		turn = !turn;
		pthread_cond_signal(&came);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	tiny = asked(argc, argv);
	together(2, play);
}
