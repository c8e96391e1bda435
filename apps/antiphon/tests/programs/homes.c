// Locks of a global variable, of objects that functions create, and of memory that was used before.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct table {
	pthread_mutex_t lock;
	long rows;
};

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static const pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) struct table *new_table(void)
{
	struct table *table = calloc(1, sizeof *table);
	pthread_mutex_init(&table->lock, NULL); // new_table
	return table;
}

static __attribute__((noinline)) void init_queue(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &attributes); // init_queue
	pthread_mutexattr_destroy(&attributes);
}

static __attribute__((noinline)) void use(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock); // use
	pthread_mutex_unlock(lock);
}

static __attribute__((noinline)) void use_later(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock); // use_later
	pthread_mutex_unlock(lock);
}

static void *run(void *queue)
{
	use(queue);
	return NULL;
}

int main(void)
{
	struct table *tables[3];
	pthread_mutex_t queue;
	pthread_rwlock_t index;
	pthread_t thread;
	init_queue(&queue);
	pthread_rwlock_init(&index, NULL); // main
	for (int number = 0; number < 3; number++)
		tables[number] = new_table();
	for (int number = 0; number < 3; number++)
		use(&tables[number]->lock);
	use_later(&tables[2]->lock);
	use(&locks[0]);
	use(&locks[1]);
	pthread_rwlock_rdlock(&index);
	pthread_rwlock_unlock(&index);
	pthread_rwlock_wrlock(&index);
	pthread_rwlock_unlock(&index);
	// Another lock at the address of the first table's, which no call initialises.
	memcpy(&tables[0]->lock, &plain, sizeof plain);
	use_later(&tables[0]->lock);
	pthread_create(&thread, NULL, run, &queue);
	pthread_join(thread, NULL);
	return 0;
}
