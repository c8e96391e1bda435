/* A mutex in shared memory that is not flagged as shared, with a waiter of another process; and one
 * whose waiter is the parent's, in a child of fork that has a copy of it. Then a readers-writer
 * lock as the first mutex, for which one of each process waits. */
#include "check.h"
#include <stdint.h>

static void *lock_and_unlock(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static pid_t reader;

static void *read_and_unlock(void *lock)
{
	__atomic_store_n(&reader, gettid(), __ATOMIC_RELEASE);
	pthread_rwlock_rdlock(lock);
	pthread_rwlock_unlock(lock);
	return NULL;
}

/* Until a thread sleeps there: byte 0 of our locks has the bit. */
static void await_sleeper(void *lock)
{
	while (!(*(volatile uint8_t *)lock & 2))
		usleep(1000);
}

int main(void)
{
	watchdog();
	pthread_mutex_t *mutex = shared_memory(sizeof *mutex);
	*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(mutex);
	pid_t child = fork();
	if (child == 0) {
		lock_and_unlock(mutex);
		_exit(0);
	}
	await_sleeper(mutex);
	pthread_mutex_unlock(mutex);
	IS(exit_of(child), 0);

	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&own);
	pthread_t thread = start(lock_and_unlock, &own);
	await_sleeper(&own);
	child = fork();
	if (child == 0) {
		pthread_mutex_unlock(&own);
		lock_and_unlock(&own);
		_exit(0);
	}
	IS(exit_of(child), 0);
	pthread_mutex_unlock(&own);
	join(thread);

	pthread_rwlock_t *rwlock = shared_memory(sizeof *rwlock);
	*rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	pthread_rwlock_wrlock(rwlock);
	child = fork();
	if (child == 0) {
		read_and_unlock(rwlock);
		_exit(0);
	}
	await_sleeper(rwlock);
	thread = start(read_and_unlock, rwlock);
	while (!asleep(__atomic_load_n(&reader, __ATOMIC_ACQUIRE)))
		usleep(1000);
	pthread_rwlock_unlock(rwlock);
	join(thread);
	IS(exit_of(child), 0);
	return failures != 0;
}
