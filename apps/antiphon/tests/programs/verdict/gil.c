// yes: threads take turns by a lock like that of Python's interpreter, and by its name. no: the
// same wait in a program of C.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static bool taken;

static __attribute__((noinline)) void take_gil(void)
{
	pthread_mutex_lock(&lock);
	while (taken)
		pthread_cond_wait(&freed, &lock);
	taken = true;
	pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) void take_turn(void)
{
	pthread_mutex_lock(&lock);
	while (taken)
		pthread_cond_wait(&freed, &lock);
	taken = true;
	pthread_mutex_unlock(&lock);
}

static bool python;

static void *work(void *unused)
{
	for (int round = 0; round < 20; round++) {
		python ? take_gil() : take_turn();
		usleep(2000);
		pthread_mutex_lock(&lock);
		taken = false;
		pthread_cond_signal(&freed);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	python = asked(argc, argv);
	together(4, work);
}
