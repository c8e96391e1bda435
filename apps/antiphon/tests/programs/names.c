/* Two threads that wait for each other at a call site whose name the test changes. They take a
 * second lock within the first; the main thread takes both the other way round. */
#include <pthread.h>
#include <time.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;

static void stay(long ms)
{
	struct timespec time = { 0, ms * 1000000 };
	nanosleep(&time, 0);
}

__attribute__((noinline, noipa)) void renamed(void)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner);
	stay(5);
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
}

__attribute__((noinline, noipa)) static void other_way_round(void)
{
	pthread_mutex_lock(&inner);
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
	pthread_mutex_unlock(&inner);
}

static void *work(void *unused)
{
	for (int round = 0; round < 6; round++)
		renamed();
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	for (int at = 0; at < 2; at++)
		pthread_create(&threads[at], 0, work, 0);
	for (int at = 0; at < 2; at++)
		pthread_join(threads[at], 0);
	/* Twice: as text that comes after 12, as a number before. */
	other_way_round();
	other_way_round();
	return 0;
}
