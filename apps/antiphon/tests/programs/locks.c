/* A program whose waits are known: THREADS threads take one mutex ROUNDS times each and stay 50 us,
 * another thread waits for a condition till the end. Prints the sum of all rounds; exits with 7. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 500 };

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open;
static long sum;

static void stay(long ns)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

__attribute__((noinline)) void add_under_lock(void)
{
	pthread_mutex_lock(&counter);
	sum++;
	stay(50000);
	pthread_mutex_unlock(&counter);
}

static void *add(void *unused)
{
	for (int round = 0; round < ROUNDS; round++)
		add_under_lock();
	return unused;
}

static void *wait_at_gate(void *unused)
{
	pthread_mutex_lock(&gate);
	while (!is_open)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	return unused;
}

int main(void)
{
	pthread_t adders[THREADS], waiter;
	pthread_create(&waiter, NULL, wait_at_gate, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&adders[i], NULL, add, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(adders[i], NULL);
	pthread_mutex_lock(&gate);
	is_open = 1;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	pthread_join(waiter, NULL);
	printf("%ld\n", sum);
	return 7;
}
