// yes: of eight locks that one function takes, all threads want the fourth most of the time.
// no: each thread has one of its own.
#include "common.h"

static pthread_mutex_t shards[8] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER
};
static bool hot;

static void *work(void *number)
{
	for (int i = 0; i < 80; i++) {
		pthread_mutex_t *lock = &shards[hot ? (i % 8 ? 3 : i / 8 % 8) : (long)number];
		pthread_mutex_lock(lock);
		usleep(1000);
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	hot = asked(argc, argv);
	together(4, work);
}
