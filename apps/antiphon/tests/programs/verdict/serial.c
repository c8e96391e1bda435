// More threads than CPUs, so that few waits for the lock are long. yes: most of their work is under
// the lock, in short sections. no: little of it is.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long counts[64];
static bool under;

static void count(int times)
{
	for (int i = 0; i < times; i++)
		for (int at = 0; at < 64; at++)
			counts[at]++;
}

static void *work(void *unused)
{
	volatile long own = 0;
	for (int i = 0; i < 8000; i++) {
		pthread_mutex_lock(&lock);
		count(under ? 40 : 1);
		pthread_mutex_unlock(&lock);
		for (int j = 0; j < (under ? 500 : 3000); j++)
			own += j;
	}
	return unused;
}

int main(int argc, char **argv)
{
	under = asked(argc, argv);
	together(8, work);
}
