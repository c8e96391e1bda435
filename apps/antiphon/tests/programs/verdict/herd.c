// yes: each of many items is announced to all waiters. no: to one.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static int items, waiting;
static bool all, over;

static void *taker(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!over) {
		waiting++;
		if (!items)
			pthread_cond_wait(&came, &lock);
		waiting--;
		if (items)
			items--;
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	all = asked(argc, argv);
	for (int i = 0; i < 16; i++)
		start(&threads[i], taker, NULL);
	for (int i = 0; i < 300;) {
		pthread_mutex_lock(&lock);
		// The next item comes when all wait again.
		if (waiting == 16 && !items) {
			items = 1;
			i++;
			if (all)
				pthread_cond_broadcast(&came);
			else
				pthread_cond_signal(&came);
		}
		pthread_mutex_unlock(&lock);
		usleep(200);
	}
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&came);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
}
