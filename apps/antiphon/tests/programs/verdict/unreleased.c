// yes: a function returns with the lock, and the others wait until the program is ended. no: it
// releases it.
#include "common.h"

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static bool leaks;

static void __attribute__((noinline)) leak(void)
{
	pthread_mutex_lock(&the_lock);
	if (!leaks)
		pthread_mutex_unlock(&the_lock);
}

static void *waiter(void *unused)
{
	pthread_mutex_lock(&the_lock);
	pthread_mutex_unlock(&the_lock);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	leaks = asked(argc, argv);
	leak();
	for (int i = 0; i < 2; i++)
		start(&threads[i], waiter, NULL);
	usleep(300000);
	_exit(0);
}
