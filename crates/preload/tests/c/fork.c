/* Locks in the child of every kind of fork, with waiters of the parent queued on them. Linked
 * against `early.c`, whose handlers are registered before all others. `exact`: thread ids are right
 * also after `_Fork` and a raw `clone`, of which the C library hears nothing; and readers-writer
 * locks that were held or waited for when the process forked are good for use in the child, which
 * the C library's are not. */
#include "check.h"
#include <signal.h>
#include <sys/syscall.h>

extern pthread_mutex_t early_mutex;
extern int early_child_code;
pid_t _Fork(void) __attribute__((weak));

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t read_held = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t write_held = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static int stop, stop_reading, in_handler, exact;

static void prepare(void)
{
	in_handler = 1;
	pthread_mutex_lock(&held);
	settle();
}

static void after(void)
{
	pthread_mutex_unlock(&held);
	in_handler = 0;
}

static void *contend(void *mutex)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		IS(pthread_mutex_lock(mutex), 0);
		IS(pthread_mutex_unlock(mutex), 0);
	}
	return NULL;
}

static void *wait_briefly(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&other);
	while (!stop) {
		struct timespec soon = in_ms(CLOCK_REALTIME, 3);
		pthread_cond_timedwait(&cond, &other, &soon);
	}
	pthread_mutex_unlock(&other);
	return NULL;
}

static void *lock_and_unlock(void *mutex)
{
	IS(pthread_mutex_lock(mutex), 0);
	IS(pthread_mutex_unlock(mutex), 0);
	return NULL;
}


static void *read_and_write(void *lock)
{
	IS(pthread_rwlock_wrlock(lock), 0);
	IS(pthread_rwlock_unlock(lock), 0);
	IS(pthread_rwlock_rdlock(lock), 0);
	IS(pthread_rwlock_unlock(lock), 0);
	return NULL;
}

/* Threads that wait for what `hold_both` holds, two for each; only writers where readers may
 * enter. */
enum { OTHERS = 4 };
static pid_t tids[OTHERS];

static void *come_again(void *number)
{
	long me = (long)number;
	__atomic_store_n(&tids[me], gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop_reading, __ATOMIC_RELAXED)) {
		pthread_rwlock_t *lock = me % 2 ? &read_held : &write_held;
		IS(pthread_rwlock_wrlock(lock), 0);
		IS(pthread_rwlock_unlock(lock), 0);
		if (me == 0) {
			IS(pthread_rwlock_rdlock(lock), 0);
			IS(pthread_rwlock_unlock(lock), 0);
		}
	}
	return NULL;
}

/* Takes both locks, and waits until others sleep for them: a thread that is just arriving may count
 * in the lock for a moment, and in a child it would do so for ever. */
static void hold_both(void)
{
	IS(pthread_rwlock_rdlock(&read_held), 0);
	IS(pthread_rwlock_wrlock(&write_held), 0);
	for (int at = 0; at < OTHERS; at++)
		while (!asleep(__atomic_load_n(&tids[at], __ATOMIC_ACQUIRE)))
			usleep(1000);
}

static void leave_both(void)
{
	IS(pthread_rwlock_unlock(&read_held), 0);
	IS(pthread_rwlock_unlock(&write_held), 0);
}

/* Checks, in a child, the locks that it has inherited from its parent. */
static void child_of_holder(int threads_too)
{
	IS(pthread_rwlock_tryrdlock(&write_held), EBUSY);
	IS(pthread_rwlock_rdlock(&read_held), 0);
	IS(pthread_rwlock_unlock(&read_held), 0);
	IS(pthread_rwlock_trywrlock(&read_held), EBUSY);
	leave_both();
	pthread_rwlock_t *locks[] = {&read_held, &write_held};
	for (int at = 0; at < 2; at++) {
		IS(pthread_rwlock_wrlock(locks[at]), 0);
		IS(pthread_rwlock_wrlock(locks[at]), EDEADLK);
		IS(pthread_rwlock_tryrdlock(locks[at]), EBUSY);
		IS(pthread_rwlock_unlock(locks[at]), 0);
		if (!threads_too)
			continue;
		pthread_t threads[3];
		for (int other = 0; other < 3; other++)
			threads[other] = start(read_and_write, locks[at]);
		read_and_write(locks[at]);
		for (int other = 0; other < 3; other++)
			join(threads[other]);
	}
}

static void forks_as_holder(void)
{
	for (int round = 0; round < 6; round++) {
		hold_both();
		pid_t pid = round % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			alarm(60);
			child_of_holder(round % 2);
			_exit(failures != 0);
		}
		IS(exit_of(pid), 0);
		leave_both();
	}
}

/* Checks in a child the mutex that its thread holds, and all those that no thread holds. */
static int child(int locked)
{
	alarm(60);
	IS(early_child_code, 0);
	for (int round = 0; round < 3; round++) {
		if (locked || round)
			IS(pthread_mutex_unlock(&held), 0);
		if (!locked && !round)
			continue;
		IS(pthread_mutex_lock(&held), 0);
		IS(pthread_mutex_trylock(&held), EBUSY);
	}
	/* Before any other lock asks for the id of this thread. */
	pthread_rwlock_t unwanted = PTHREAD_RWLOCK_INITIALIZER;
	IS(pthread_rwlock_wrlock(&unwanted), 0);
	IS(pthread_rwlock_wrlock(&unwanted), EDEADLK);
	IS(pthread_rwlock_unlock(&unwanted), 0);
	IS(pthread_mutex_lock(&checked), 0);
	IS(pthread_mutex_lock(&checked), EDEADLK);
	/* The holder is this thread, not the parent's. */
	if (!locked || exact)
		IS(*(volatile int *)((char *)&checked + 8), gettid());
	IS(pthread_mutex_unlock(&checked), 0);
	IS(pthread_mutex_lock(&recursive), 0);
	IS(pthread_mutex_lock(&recursive), 0);
	IS(pthread_mutex_unlock(&recursive), 0);
	IS(pthread_mutex_unlock(&recursive), 0);
	/* The parent's waiters don't exist in this process. */
	pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
	IS(pthread_cond_signal(&cond), 0);
	IS(pthread_cond_broadcast(&cond), 0);
	pthread_mutex_lock(&mine);
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	IS(pthread_cond_timedwait(&cond, &mine, &soon), ETIMEDOUT);
	return failures != 0;
}

static int child_with_threads(void)
{
	int code = child(1);
	pthread_mutex_unlock(&held);
	pthread_t threads[3];
	for (int at = 0; at < 3; at++)
		threads[at] = start(lock_and_unlock, &held);
	for (int at = 0; at < 3; at++)
		join(threads[at]);
	return code || failures != 0;
}

int main(int count, char **arguments)
{
	watchdog();
	exact = count == 2 && !strcmp(arguments[1], "exact");
	pthread_atfork(prepare, after, after);
	pthread_t threads[4];
	threads[0] = start(contend, &held);
	threads[1] = start(contend, &held);
	threads[2] = start(contend, &early_mutex);
	threads[3] = start(wait_briefly, NULL);
	for (int round = 0; round < 30; round++) {
		/* The handlers lock before and unlock in both. */
		pid_t pid = fork();
		if (pid == 0)
			_exit(child(0));
		IS(exit_of(pid), 0);

		/* No handlers: the thread that forks holds the mutex, others are queued. */
		IS(pthread_mutex_lock(&held), 0);
		settle();
		pid = _Fork ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(child(1));
		IS(exit_of(pid), 0);
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(child(1));
		IS(exit_of(pid), 0);
		IS(pthread_mutex_unlock(&held), 0);
	}
	if (exact) {
		pthread_t others[OTHERS];
		for (long at = 0; at < OTHERS; at++)
			others[at] = start(come_again, (void *)at);
		forks_as_holder();
		__atomic_store_n(&stop_reading, 1, __ATOMIC_RELAXED);
		for (int at = 0; at < OTHERS; at++)
			join(others[at]);
	}
	/* A child that makes threads of its own. */
	pid_t pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(&held);
		_exit(child_with_threads());
	}
	IS(exit_of(pid), 0);
	/* A child that shares the memory. */
	pid = vfork();
	if (pid == 0) {
		pthread_mutex_lock(&early_mutex);
		pthread_mutex_unlock(&early_mutex);
		_exit(0);
	}
	IS(exit_of(pid), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int at = 0; at < 4; at++)
		join(threads[at]);
	return failures != 0;
}
