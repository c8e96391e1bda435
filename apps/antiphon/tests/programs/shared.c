/* A lock that one thread reads while another waits for 50 ms to write, and the other way round. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t has_it, comes;

/* The first one stays until the second is about to wait, and 50 ms more. */
static void stay(int first)
{
	if (!first)
		return;
	sem_post(&has_it);
	sem_wait(&comes);
	usleep(50000);
}

__attribute__((noinline)) static void read_it(int first)
{
	pthread_rwlock_rdlock(&lock);
	stay(first);
	pthread_rwlock_unlock(&lock);
}

__attribute__((noinline)) static void write_it(int first)
{
	pthread_rwlock_wrlock(&lock);
	stay(first);
	pthread_rwlock_unlock(&lock);
}

static void *begin(void *reads)
{
	(reads ? read_it : write_it)(1);
	return NULL;
}

static void *follow(void *reads)
{
	sem_post(&comes);
	(reads ? read_it : write_it)(0);
	return NULL;
}

int main(void)
{
	sem_init(&has_it, 0, 0);
	sem_init(&comes, 0, 0);
	for (long reads = 0; reads < 2; reads++) {
		pthread_t threads[2];
		pthread_create(&threads[0], NULL, begin, (void *)reads);
		sem_wait(&has_it);
		pthread_create(&threads[1], NULL, follow, (void *)(1 - reads));
		for (int at = 0; at < 2; at++)
			pthread_join(threads[at], NULL);
	}
	return 7;
}
