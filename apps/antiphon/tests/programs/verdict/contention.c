// yes: three threads take one lock and keep it for 2 ms. no: each has a lock of its own.
#include "common.h"

static pthread_mutex_t locks[3] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER
};
static bool one;

static void *keep_it_long(void *number)
{
	pthread_mutex_t *lock = &locks[one ? 0 : (long)number];
	for (int i = 0; i < 60; i++) {
		pthread_mutex_lock(lock);
		usleep(2000);
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	one = asked(argc, argv);
	together(3, keep_it_long);
}
