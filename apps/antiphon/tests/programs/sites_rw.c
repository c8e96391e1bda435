/* Three readers-writer locks: one is made in `make`, one is waited for in `read_here`, one in
 * `write_here`. Prints the policy of each, which stands in its thirteenth byte. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static pthread_rwlock_t made, shared = PTHREAD_RWLOCK_INITIALIZER,
			      written = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

__attribute__((noinline)) void make(void)
{
	pthread_rwlock_init(&made, NULL);
	__asm__ volatile("");
}

__attribute__((noinline)) void read_here(void)
{
	pthread_rwlock_rdlock(&shared);
	pthread_rwlock_unlock(&shared);
}

__attribute__((noinline)) void write_here(void)
{
	pthread_rwlock_wrlock(&written);
	pthread_rwlock_unlock(&written);
}

static void *run(void *function)
{
	((void (*)(void))function)();
	return NULL;
}

/* By the name of the last waiter. */
static int is_waited_for(pthread_rwlock_t *lock)
{
	return ((volatile uint32_t *)lock)[2] != 0;
}

static void let_wait(void (*function)(void), pthread_rwlock_t *lock)
{
	pthread_t thread;
	pthread_rwlock_wrlock(lock);
	pthread_create(&thread, NULL, run, (void *)function);
	while (!is_waited_for(lock))
		usleep(1000);
	pthread_rwlock_unlock(lock);
	pthread_join(thread, NULL);
}

static int policy(pthread_rwlock_t *lock)
{
	return ((unsigned char *)lock)[12];
}

int main(void)
{
	make();
	let_wait(read_here, &shared);
	let_wait(write_here, &written);
	printf("made %d read %d written %d\n", policy(&made), policy(&shared), policy(&written));
	return 0;
}
