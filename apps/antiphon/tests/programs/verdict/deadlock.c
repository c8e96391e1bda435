// yes: two threads take two locks in both orders at once, and stay so until the program is ended.
// no: they take them in one order.
#include "common.h"

static pthread_mutex_t from = PTHREAD_MUTEX_INITIALIZER, to = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static bool turned;

static void *move(void *number)
{
	bool back = turned && number;
	pthread_mutex_t *first = back ? &to : &from, *second = back ? &from : &to;
	if (!turned)
		pthread_barrier_wait(&both);
	pthread_mutex_lock(first);
	if (turned)
		pthread_barrier_wait(&both);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	turned = asked(argc, argv);
	pthread_barrier_init(&both, NULL, 2);
	for (long i = 0; i < 2; i++)
		start(&threads[i], move, (void *)i);
	usleep(300000);
	if (turned)
		_exit(3);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
