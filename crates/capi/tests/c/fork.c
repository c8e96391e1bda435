/* A forked child goes on with the objects that it has inherited, its parent's waiters and all. */
#include "check.h"

#include <antiphon.h>

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT, held = ANTIPHON_MUTEX_INIT;
static antiphon_rwlock_t lock = ANTIPHON_RWLOCK_INIT;
static antiphon_cond_t changed = ANTIPHON_COND_INIT;
static int waiting, over;

static void *wait_changed(void *unused)
{
	(void)unused;
	antiphon_mutex_lock(&mutex);
	waiting++;
	while (!over)
		antiphon_cond_wait(&changed, &mutex);
	antiphon_mutex_unlock(&mutex);
	return NULL;
}

static void *wait_locked(void *unused)
{
	(void)unused;
	antiphon_mutex_lock(&held);
	antiphon_mutex_unlock(&held);
	antiphon_rwlock_wrlock(&lock);
	antiphon_rwlock_wrunlock(&lock);
	return NULL;
}

static void *tell(void *unused)
{
	(void)unused;
	antiphon_mutex_lock(&mutex);
	over = 2;
	antiphon_cond_signal(&changed);
	antiphon_mutex_unlock(&mutex);
	return NULL;
}

static int child(void)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
	pthread_t thread;
	watchdog();
	/* Owned by the thread that forked; its queue names waiters that are not here. */
	antiphon_mutex_unlock(&held);
	antiphon_rwlock_rdunlock(&lock);
	antiphon_mutex_lock(&held);
	antiphon_mutex_unlock(&held);
	antiphon_rwlock_wrlock(&lock);
	antiphon_rwlock_wrunlock(&lock);
	/* There are no waiters here. */
	antiphon_cond_signal(&changed);
	antiphon_cond_broadcast(&changed);
	IS(antiphon_cond_timedwait(&changed, &mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	over = 0;
	thread = start(tell, NULL);
	while (!over)
		antiphon_cond_wait(&changed, &mutex);
	antiphon_mutex_unlock(&mutex);
	join(thread);
	IS(antiphon_cond_destroy(&changed), 0);
	IS(antiphon_mutex_destroy(&mutex), 0);
	return failures != 0;
}

int main(void)
{
	pthread_t threads[4];
	int at, round;
	watchdog();
	IS(antiphon_rwlock_rdlock(&lock), 0);
	antiphon_mutex_lock(&held);
	for (at = 0; at < 2; at++)
		threads[at] = start(wait_changed, NULL);
	for (; at < 4; at++)
		threads[at] = start(wait_locked, NULL);
	for (;;) {
		antiphon_mutex_lock(&mutex);
		if (waiting == 2)
			break;
		antiphon_mutex_unlock(&mutex);
		usleep(1000);
	}
	settle();
	for (round = 0; round < 3; round++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(child());
		IS(exit_of(pid), 0);
	}
	/* The parent's are where they were. */
	over = 1;
	antiphon_cond_broadcast(&changed);
	antiphon_mutex_unlock(&mutex);
	antiphon_mutex_unlock(&held);
	antiphon_rwlock_rdunlock(&lock);
	for (at = 0; at < 4; at++)
		join(threads[at]);
	IS(antiphon_cond_destroy(&changed), 0);
	return failures != 0;
}
