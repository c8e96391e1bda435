/* Three mutexes: one is made in `make`, one is waited for in `wait_here`, one elsewhere. Prints the
 * policy of each, which stands in its second byte. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t made, waited = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void make(void)
{
	pthread_mutex_init(&made, NULL);
	__asm__ volatile("");
}

__attribute__((noinline)) void wait_here(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

static void *wait(void *unused)
{
	wait_here(&waited);
	return unused;
}

static void *wait_elsewhere(void *unused)
{
	pthread_mutex_lock(&other);
	pthread_mutex_unlock(&other);
	return unused;
}

/* By the name of the last waiter; of glibc's mutex, by its lock word. */
static int is_waited_for(pthread_mutex_t *mutex)
{
	volatile uint32_t *words = (volatile uint32_t *)mutex;
	return words[1] != 0 || words[0] == 2;
}

static void let_wait(void *(*run)(void *), pthread_mutex_t *mutex)
{
	pthread_t thread;
	pthread_mutex_lock(mutex);
	pthread_create(&thread, NULL, run, NULL);
	while (!is_waited_for(mutex))
		usleep(1000);
	pthread_mutex_unlock(mutex);
	pthread_join(thread, NULL);
}

static int policy(pthread_mutex_t *mutex)
{
	return ((unsigned char *)mutex)[1];
}

int main(void)
{
	make();
	let_wait(wait, &waited);
	let_wait(wait_elsewhere, &other);
	printf("made %d waited %d other %d\n", policy(&made), policy(&waited), policy(&other));
	return 0;
}
