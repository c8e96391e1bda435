// yes: four workers wait for work, and there is none. no: they compute meanwhile.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;
static bool none, over;

static void *worker(void *number)
{
	(void)number;
	if (!none)
		compute(0.1);
	pthread_mutex_lock(&lock);
	while (none && !over)
		pthread_cond_wait(&work_came, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t workers[4];
	none = asked(argc, argv);
	for (int i = 0; i < 4; i++)
		start(&workers[i], worker, NULL);
	usleep(400000);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_mutex_unlock(&lock);
	pthread_cond_broadcast(&work_came);
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i], NULL);
}
