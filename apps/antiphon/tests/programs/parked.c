/* Mutexes of three kinds that the main thread holds, one of them with three threads asleep in its
 * queue, in the order of their names. Calls `all_wait` when they are; a debugger that
 * stops there has to end the program. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { WAITERS = 3 };

pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t unused = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t glibcs;
pthread_spinlock_t spin;

static void *wait_in_line(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&contended);
	pthread_mutex_unlock(&contended);
	return NULL;
}

/* The name of the last waiter. */
static uint32_t last(void)
{
	return ((volatile uint32_t *)&contended)[1];
}

__attribute__((noinline)) void all_wait(void)
{
	__asm__ volatile("");
}

int main(void)
{
	static char *names[WAITERS] = { "first", "second", "third" };
	pthread_t threads[WAITERS];
	pthread_mutexattr_t shared;
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&glibcs, &shared);
	pthread_spin_init(&spin, 0);
	pthread_spin_lock(&spin);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&contended);
	for (int i = 0; i < WAITERS; i++) {
		uint32_t before = last();
		pthread_create(&threads[i], NULL, wait_in_line, names[i]);
		while (last() == before)
			usleep(1000);
	}
	/* They spin for some microseconds, and sleep. */
	usleep(200000);
	all_wait();
	pthread_mutex_unlock(&contended);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
