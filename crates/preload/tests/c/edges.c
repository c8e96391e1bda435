/* Locks at the edges of a program's and a thread's life: constructors, thread-local destructors,
 * `atexit`, signal handlers, threads that the C library knows nothing of, memory that goes away
 * right after the unlock. Linked against `early.c`. */
#include "check.h"
#include <signal.h>
#include <sys/syscall.h>

extern int early_unlock(void);
extern pthread_rwlock_t early_rwlock;

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t key;
static int destroyed, stop;

static int read_and_write(pthread_rwlock_t *lock)
{
	return pthread_rwlock_rdlock(lock) || pthread_rwlock_unlock(lock) ||
	       pthread_rwlock_wrlock(lock) || pthread_rwlock_unlock(lock);
}

static void *contend(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&contended);
		pthread_mutex_unlock(&contended);
		read_and_write(&rwlock);
	}
	return NULL;
}

static void at_thread_end(void *round)
{
	IS(pthread_mutex_lock(&contended), 0);
	destroyed++;
	struct timespec soon = in_ms(CLOCK_REALTIME, 1);
	IS(pthread_cond_timedwait(&cond, &contended, &soon), ETIMEDOUT);
	IS(pthread_mutex_unlock(&contended), 0);
	IS(read_and_write(&rwlock), 0);
	/* Again, after the other destructors, as long as the C library goes on. */
	if ((long)round < 3)
		pthread_setspecific(key, (void *)((long)round + 1));
}

static void *end(void *argument)
{
	(void)argument;
	pthread_setspecific(key, (void *)1);
	return NULL;
}

/* The handler locks its own lock, while the interrupted thread is in the slow path of another. */
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_by_handler = PTHREAD_RWLOCK_INITIALIZER;
static int handled;

static void on_signal(int number)
{
	(void)number;
	if (pthread_mutex_trylock(&of_handler) == 0) {
		handled++;
		pthread_mutex_unlock(&of_handler);
	}
	if (pthread_rwlock_tryrdlock(&read_by_handler) == 0)
		pthread_rwlock_unlock(&read_by_handler);
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGUSR1, &action, NULL);
	pthread_t threads[3];
	for (int at = 0; at < 3; at++)
		threads[at] = start(contend, NULL);
	for (int round = 0; round < 3000; round++)
		pthread_kill(threads[round % 3], SIGUSR1);
	/* Interrupted waits go on. */
	pthread_mutex_lock(&contended);
	for (int round = 0; round < 5; round++) {
		struct timespec soon = in_ms(CLOCK_REALTIME, 5);
		pthread_kill(pthread_self(), SIGUSR1);
		IS(pthread_cond_timedwait(&cond, &contended, &soon), ETIMEDOUT);
	}
	pthread_mutex_unlock(&contended);
	stop = 1;
	for (int at = 0; at < 3; at++)
		join(threads[at]);
	stop = 0;
	YES(handled > 0);
}

/* A thread created without the C library, which shares all memory, including thread-local memory:
 * its creator waits as long as it runs. */
static int bare(void *argument)
{
	(void)argument;
	for (int round = 0; round < 2000; round++) {
		if (pthread_mutex_lock(&contended) || pthread_mutex_unlock(&contended) ||
		    read_and_write(&rwlock))
			return 1;
	}
	return 0;
}

static void bare_thread(void)
{
	enum { STACK = 1 << 16 };
	pthread_t thread = start(contend, NULL);
	char *stack = shared_memory(STACK);
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD;
	pid_t pid = clone(bare, stack + STACK, flags, NULL);
	YES(pid > 0);
	IS(exit_of(pid), 0);
	stop = 1;
	join(thread);
	stop = 0;
}

/* The last user frees the object right after it has unlocked it, while others are on their way
 * out of their own unlock. */
struct counted {
	pthread_mutex_t mutex;
	int users;
};

static void *put(void *argument)
{
	struct counted *counted = argument;
	pthread_mutex_lock(&counted->mutex);
	int last = --counted->users == 0;
	pthread_mutex_unlock(&counted->mutex);
	if (last)
		munmap(counted, 4096);
	return NULL;
}

/* The same for a lock that each thread takes first to read and then to write. */
struct counted_rw {
	pthread_rwlock_t lock;
	int users;
};

static void *put_rw(void *argument)
{
	struct counted_rw *counted = argument;
	pthread_rwlock_rdlock(&counted->lock);
	pthread_rwlock_unlock(&counted->lock);
	pthread_rwlock_wrlock(&counted->lock);
	int last = --counted->users == 0;
	pthread_rwlock_unlock(&counted->lock);
	if (last)
		munmap(counted, 4096);
	return NULL;
}

static void gone_after_rw_unlock(void)
{
	for (int round = 0; round < 1000; round++) {
		struct counted_rw *counted = shared_memory(4096);
		counted->users = 3;
		pthread_t threads[3];
		for (int at = 0; at < 3; at++)
			threads[at] = start(put_rw, counted);
		for (int at = 0; at < 3; at++)
			join(threads[at]);
	}
}

static void gone_after_unlock(void)
{
	for (int round = 0; round < 1500; round++) {
		struct counted *counted = shared_memory(4096);
		counted->users = 3;
		pthread_t threads[3];
		for (int at = 0; at < 3; at++)
			threads[at] = start(put, counted);
		for (int at = 0; at < 3; at++)
			join(threads[at]);
	}
}

static void last(void)
{
	if (pthread_mutex_lock(&contended) || pthread_mutex_unlock(&contended) ||
	    pthread_cond_broadcast(&cond) || read_and_write(&rwlock))
		_exit(97);
}

int main(void)
{
	watchdog();
	atexit(last);
	IS(early_unlock(), 0);
	IS(early_unlock(), EPERM);
	/* Held to write since before `main`. */
	IS(pthread_rwlock_rdlock(&early_rwlock), EDEADLK);
	IS(pthread_rwlock_unlock(&early_rwlock), 0);
	IS(read_and_write(&early_rwlock), 0);
	pthread_key_create(&key, at_thread_end);
	pthread_t threads[2] = {start(end, NULL), start(end, NULL)};
	join(threads[0]);
	join(threads[1]);
	YES(destroyed >= 2);
	signals();
	bare_thread();
	gone_after_unlock();
	gone_after_rw_unlock();
	return failures != 0;
}
