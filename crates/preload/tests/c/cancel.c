/* Cancellation of waits on condition variables; locking a mutex is no cancellation point. */
#include "check.h"

struct wait {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int how, entered, cleaned, returned;
};

static void clean(void *argument)
{
	struct wait *wait = argument;
	/* This thread owns the mutex again, as an error-checking mutex reports. */
	IS(pthread_mutex_lock(&wait->mutex), EDEADLK);
	wait->cleaned++;
	IS(pthread_mutex_unlock(&wait->mutex), 0);
}

static void once(struct wait *wait)
{
	struct timespec late;
	switch (wait->how) {
	case 0:
		pthread_cond_wait(&wait->cond, &wait->mutex);
		break;
	case 1:
		late = in_ms(CLOCK_REALTIME, 100000);
		pthread_cond_timedwait(&wait->cond, &wait->mutex, &late);
		break;
	default:
		late = in_ms(CLOCK_MONOTONIC, 100000);
		pthread_cond_clockwait(&wait->cond, &wait->mutex, CLOCK_MONOTONIC, &late);
	}
}

static void *blocked(void *argument)
{
	struct wait *wait = argument;
	IS(pthread_mutex_lock(&wait->mutex), 0);
	pthread_cleanup_push(clean, wait);
	wait->entered = 1;
	for (;;)
		once(wait);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *pending(void *argument)
{
	struct wait *wait = argument;
	int old;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	IS(pthread_mutex_lock(&wait->mutex), 0);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(old, &old);
	pthread_cleanup_push(clean, wait);
	once(wait);
	wait->returned = 1;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *disabled(void *argument)
{
	struct wait *wait = argument;
	int old;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cancel(pthread_self());
	IS(pthread_mutex_lock(&wait->mutex), 0);
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 10);
	IS(pthread_cond_clockwait(&wait->cond, &wait->mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	IS(pthread_mutex_unlock(&wait->mutex), 0);
	return NULL;
}

static struct wait make(int shared, int how)
{
	struct wait wait = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .how = how};
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	if (shared)
		pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	IS(pthread_cond_init(&wait.cond, &attributes), 0);
	return wait;
}

static void all_waits(void)
{
	for (int shared = 0; shared < 2; shared++)
		for (int how = 0; how < 3; how++) {
			struct wait wait = make(shared, how);
			pthread_t thread = start(blocked, &wait);
			for (int entered = 0; !entered; sched_yield()) {
				pthread_mutex_lock(&wait.mutex);
				entered = wait.entered;
				pthread_mutex_unlock(&wait.mutex);
			}
			settle();
			IS(pthread_cancel(thread), 0);
			YES(join(thread) == PTHREAD_CANCELED);
			IS(wait.cleaned, 1);
			IS(pthread_cond_destroy(&wait.cond), 0);

			wait = make(shared, how);
			thread = start(pending, &wait);
			YES(join(thread) == PTHREAD_CANCELED);
			IS(wait.cleaned, 1);
			IS(wait.returned, 0);
			IS(pthread_cond_destroy(&wait.cond), 0);

			wait = make(shared, how);
			YES(join(start(disabled, &wait)) == NULL);
			IS(pthread_cond_destroy(&wait.cond), 0);
		}
}

/* A thread that is cancelled while it is notified passes the notification on. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, tokens;

static void unlock(void *argument)
{
	(void)argument;
	waiting--;
	pthread_mutex_unlock(&mutex);
}

static void *take_token(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, NULL);
	waiting++;
	while (!tokens)
		pthread_cond_wait(&cond, &mutex);
	tokens--;
	pthread_cleanup_pop(1);
	return NULL;
}

static void signal_and_cancel(void)
{
	for (int round = 0; round < 1500; round++) {
		pthread_t threads[2];
		for (int at = 0; at < 2; at++)
			threads[at] = start(take_token, NULL);
		for (int all = 0; !all; sched_yield()) {
			pthread_mutex_lock(&mutex);
			all = waiting == 2;
			pthread_mutex_unlock(&mutex);
		}
		pthread_mutex_lock(&mutex);
		tokens = 1;
		pthread_mutex_unlock(&mutex);
		pthread_cond_signal(&cond);
		for (int spin = 0; spin < round % 50 * 20; spin++)
			__asm__ volatile("");
		pthread_cancel(threads[round % 2]);
		join(threads[round % 2]);
		/* The returned code does not show whether the thread was cancelled in its wait: a
		 * late signal of `pthread_cancel` makes glibc 2.36 report that of a thread that has
		 * just returned. The token shows it. */
		pthread_mutex_lock(&mutex);
		int taken = !tokens && waiting;
		tokens += taken;
		pthread_mutex_unlock(&mutex);
		if (taken)
			pthread_cond_signal(&cond);
		/* Hangs if a notification was lost. */
		YES(join(threads[!(round % 2)]) == NULL);
		IS(tokens, 0);
		IS(waiting, 0);
	}
}

/* Locking is not a cancellation point, whether it waits or not. */
static void *lock_pending(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&mutex);
	struct timespec soon = in_ms(CLOCK_REALTIME, 10);
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&own);
	IS(pthread_mutex_timedlock(&own, &soon), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	tokens = 7;
	pthread_testcancel();
	return NULL;
}

static void lock_is_no_point(void)
{
	tokens = 0;
	pthread_mutex_lock(&mutex);
	pthread_t thread = start(lock_pending, NULL);
	settle();
	pthread_cancel(thread);
	settle();
	pthread_mutex_unlock(&mutex);
	YES(join(thread) == PTHREAD_CANCELED);
	IS(tokens, 7);
	IS(pthread_mutex_trylock(&mutex), 0);
	pthread_mutex_unlock(&mutex);
}

int main(void)
{
	watchdog();
	all_waits();
	signal_and_cancel();
	lock_is_no_point();
	return failures != 0;
}
