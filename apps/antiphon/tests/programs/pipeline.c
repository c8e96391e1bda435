/* One producer, two workers that take from it in turn, joined at the end; then a child that does
 * the same. Each of 40 000 items is put and taken under one mutex. A few are there at most: any
 * long part of it has a worker in it, however seldom the machine lets each run. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static int items, over;

enum { MOST = 64 };

void *worker(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (!items && !over)
			pthread_cond_wait(&more, &mutex);
		if (!items)
			break;
		if (items-- == MOST)
			pthread_cond_signal(&room);
		pthread_mutex_unlock(&mutex);
		pthread_mutex_lock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void work(void)
{
	pthread_t workers[2];
	over = 0;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&workers[i], NULL, worker, NULL))
			abort();
	for (int i = 0; i < 40000; i++) {
		pthread_mutex_lock(&mutex);
		while (items == MOST)
			pthread_cond_wait(&room, &mutex);
		items++;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&mutex);
	}
	pthread_mutex_lock(&mutex);
	over = 1;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
}

int main(void)
{
	work();
	pid_t child = fork();
	work();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return 3;
}
