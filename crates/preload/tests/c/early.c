/* A library whose constructor runs before that of a preloaded one: locks, and registers handlers
 * of fork that lock. */
#define _GNU_SOURCE
#include <pthread.h>

pthread_mutex_t early_mutex = PTHREAD_MUTEX_INITIALIZER;
int early_child_code;
pthread_rwlock_t early_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t locked_at_start = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void prepare(void)
{
	pthread_mutex_lock(&early_mutex);
}

static void parent(void)
{
	pthread_mutex_unlock(&early_mutex);
}

static void child(void)
{
	early_child_code = pthread_mutex_unlock(&early_mutex);
	early_child_code |= pthread_mutex_lock(&early_mutex);
	early_child_code |= pthread_mutex_unlock(&early_mutex);
}

static __attribute__((constructor)) void begin(void)
{
	pthread_mutex_lock(&locked_at_start);
	pthread_mutex_lock(&locked_at_start);
	pthread_rwlock_wrlock(&early_rwlock);
	pthread_atfork(prepare, parent, child);
}

int early_unlock(void)
{
	return pthread_mutex_unlock(&locked_at_start) | pthread_mutex_unlock(&locked_at_start);
}
