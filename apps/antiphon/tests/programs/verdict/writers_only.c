// yes: a readers-writer lock is taken to write, always. no: also to read.
#include "common.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static bool only;
static volatile long value;

static void *work(void *number)
{
	(void)number;
	for (int i = 0; i < 2000; i++) {
		if (only || i % 2)
			pthread_rwlock_wrlock(&lock);
		else
			pthread_rwlock_rdlock(&lock);
		if (only || i % 2)
			value++;
		pthread_rwlock_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	only = asked(argc, argv);
	together(2, work);
}
