/* Locks in memory that processes share: which threads are kept out and told, what each call
 * returns. */
#define _DEFAULT_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <antiphon.h>

enum { PROCESSES = 3, EACH = 2000 };

static struct shared {
	antiphon_pshared_rwlock_t lock;
	antiphon_pshared_barrier_t barrier;
	long left, right, leaders;
} *shared;

/* The code that another process returns from `run`. */
static int in_child(int (*run)(void))
{
	int status = 0;
	pid_t child = fork();
	if (child == 0)
		_exit(run());
	YES(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

enum { READ = 1, WRITE = 2, LATE = 4 };

static int look(void)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
	int seen = 0;
	if (antiphon_pshared_rwlock_tryrdlock(&shared->lock) == 0) {
		seen |= READ;
		antiphon_pshared_rwlock_rdunlock(&shared->lock);
	}
	if (antiphon_pshared_rwlock_trywrlock(&shared->lock) == 0) {
		seen |= WRITE;
		antiphon_pshared_rwlock_wrunlock(&shared->lock);
	}
	if (antiphon_pshared_rwlock_timedwrlock(&shared->lock, CLOCK_MONOTONIC, &soon) == 0)
		antiphon_pshared_rwlock_wrunlock(&shared->lock);
	else if (antiphon_pshared_rwlock_timedrdlock(&shared->lock, CLOCK_MONOTONIC, &soon))
		seen |= LATE;
	else
		antiphon_pshared_rwlock_rdunlock(&shared->lock);
	return seen;
}

static int die(void)
{
	return antiphon_pshared_rwlock_wrlock(&shared->lock);
}

static int add(void)
{
	int at, torn = 0;
	shared->leaders += antiphon_pshared_barrier_wait(&shared->barrier);
	for (at = 0; at < EACH; at++) {
		if (antiphon_pshared_rwlock_wrlock(&shared->lock))
			return 1;
		shared->left++;
		shared->right++;
		antiphon_pshared_rwlock_wrunlock(&shared->lock);
		if (antiphon_pshared_rwlock_rdlock(&shared->lock))
			return 1;
		torn |= shared->left != shared->right;
		antiphon_pshared_rwlock_rdunlock(&shared->lock);
	}
	return torn;
}

static void together(void)
{
	int at, status;
	IS(antiphon_pshared_barrier_init(&shared->barrier, PROCESSES), 0);
	for (at = 0; at < PROCESSES; at++)
		if (fork() == 0)
			_exit(add());
	for (at = 0; at < PROCESSES; at++) {
		YES(wait(&status) > 0);
		IS(status, 0);
	}
	IS(shared->left, PROCESSES * EACH);
	IS(shared->leaders, 1);
}

static void refusals(void)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 5), bad = { 0, 1000000000 };
	antiphon_pshared_barrier_t one;
	IS(antiphon_pshared_barrier_init(&one, 0), EINVAL);
	IS(antiphon_pshared_barrier_init(&one, 65536), EINVAL);
	IS(antiphon_pshared_barrier_init(&one, 65535), 0);
	IS(antiphon_pshared_barrier_timedwait(&one, CLOCK_REALTIME, &soon), ETIMEDOUT);
	IS(antiphon_pshared_barrier_timedwait(&one, CLOCK_REALTIME, &bad), EINVAL);
	IS(antiphon_pshared_barrier_init(&one, 1), 0);
	IS(antiphon_pshared_barrier_timedwait(&one, CLOCK_REALTIME, &soon), 1);
	IS(antiphon_pshared_barrier_wait(&one), 1);
	IS(antiphon_pshared_rwlock_timedrdlock(&shared->lock, CLOCK_REALTIME, &bad), EINVAL);
	IS(antiphon_pshared_rwlock_timedwrlock(&shared->lock, 77, &soon), EINVAL);
}

int main(void)
{
	watchdog();
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	refusals();
	IS(in_child(look), READ | WRITE);
	IS(antiphon_pshared_rwlock_rdlock(&shared->lock), 0);
	IS(in_child(look), READ);
	antiphon_pshared_rwlock_rdunlock(&shared->lock);
	IS(antiphon_pshared_rwlock_wrlock(&shared->lock), 0);
	IS(in_child(look), LATE);
	antiphon_pshared_rwlock_wrunlock(&shared->lock);
	together();

	/* Only a waiter looks for dead owners. */
	IS(in_child(die), 0);
	IS(antiphon_pshared_rwlock_tryrdlock(&shared->lock), EBUSY);
	IS(antiphon_pshared_rwlock_rdlock(&shared->lock), EOWNERDEAD);
	IS(antiphon_pshared_rwlock_is_whole(&shared->lock), 0);
	antiphon_pshared_rwlock_rdunlock(&shared->lock);
	IS(antiphon_pshared_rwlock_trywrlock(&shared->lock), EOWNERDEAD);
	antiphon_pshared_rwlock_recovered(&shared->lock);
	IS(antiphon_pshared_rwlock_is_whole(&shared->lock), 1);
	antiphon_pshared_rwlock_wrunlock(&shared->lock);
	IS(in_child(look), READ | WRITE);
	return failures != 0;
}
